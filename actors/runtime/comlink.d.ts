declare module 'comlink/dist/esm/node-adapter.mjs' {
  import type { MessagePort } from 'node:worker_threads'
  import type { Endpoint } from 'comlink'
  /** Adapts a Node message port to comlink's `Endpoint`. */
  export default function nodeEndpoint(port: MessagePort): Endpoint
}
