// What the official JavaScript library of Standard Webhooks makes of calls as a receiver got them.
//
//     node verify_webhooks.mjs WEB < calls.json
//
// WEB is the folder whose node_modules has the library. Each call is {secret, body (base64), headers}; each answer
// {event}, or {refused} with the library's own words.

import { readFileSync } from "node:fs"
import { createRequire } from "node:module"
import { resolve } from "node:path"

const { Webhook } = createRequire(resolve(process.argv[2], "package.json"))("standardwebhooks")

function judged({ secret, body, headers }) {
  try {
    return { event: new Webhook(secret).verify(Buffer.from(body, "base64"), headers) }
  } catch (error) {
    if (error.name !== "WebhookVerificationError") throw error
    return { refused: error.message }
  }
}

console.log(JSON.stringify(JSON.parse(readFileSync(0, "utf8")).map(judged)))
