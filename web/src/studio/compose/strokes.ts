/** What was painted, in parts of the picture's width and height, so that it is as sharp as the picture in the end. */
export interface Stroke {
  /** Of the brush, as a part of the picture's longer side. */
  size: number
  isErasing: boolean
  points: readonly (readonly [number, number])[]
}

export const EVERYTHING: Stroke = { size: 4, isErasing: false, points: [[0.5, 0.5]] }

interface Colors {
  paint: string
  /** Null: what is erased becomes transparent. */
  erase: string | null
}

export function draw(canvas: HTMLCanvasElement, strokes: readonly Stroke[], colors: Colors): void {
  const pen = canvas.getContext("2d")
  if (!pen) return
  const { width, height } = canvas
  pen.clearRect(0, 0, width, height)
  if (colors.erase) {
    pen.fillStyle = colors.erase
    pen.fillRect(0, 0, width, height)
  }
  pen.lineCap = "round"
  pen.lineJoin = "round"
  for (const stroke of strokes) {
    pen.globalCompositeOperation = stroke.isErasing && !colors.erase ? "destination-out" : "source-over"
    pen.strokeStyle = stroke.isErasing ? (colors.erase ?? "#000") : colors.paint
    pen.lineWidth = stroke.size * Math.max(width, height)
    pen.beginPath()
    for (const [x, y] of stroke.points) pen.lineTo(x * width, y * height)
    const [only] = stroke.points
    // A line to where it is already: a dot.
    if (only && stroke.points.length === 1) pen.lineTo(only[0] * width, only[1] * height)
    pen.stroke()
  }
}

/** The mask as the service reads it: white where the picture may change, as large as the picture. */
export function maskOf(strokes: readonly Stroke[], width: number, height: number): Promise<Blob> {
  const canvas = document.createElement("canvas")
  canvas.width = width
  canvas.height = height
  draw(canvas, strokes, { paint: "#fff", erase: "#000" })
  return new Promise((resolve, reject) =>
    canvas.toBlob((blob) => (blob ? resolve(blob) : reject(new Error("no room to draw"))), "image/png"),
  )
}
