import { Modal } from "@mantine/core"
import { useShared } from "@shared/i18n/messages"
import type { ReactNode } from "react"

interface DialogProps {
  title: string
  isWide?: boolean
  /** Something in it must not be closed by a slip. */
  isFirm?: boolean
  onClose: () => void
  children: ReactNode
}

/** A question above the page; the focus stays in it, and returns to where it came from. */
export function Dialog({ title, isWide = false, isFirm = false, onClose, children }: DialogProps) {
  const words = useShared()
  return (
    <Modal
      opened
      onClose={onClose}
      title={title}
      size={isWide ? "lg" : "md"}
      closeOnClickOutside={!isFirm}
      closeOnEscape={!isFirm}
      withCloseButton={!isFirm}
      closeButtonProps={{ "aria-label": words.close }}
      transitionProps={{ duration: 0 }}
    >
      {children}
    </Modal>
  )
}
