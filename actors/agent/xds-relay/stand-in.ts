/** Serves the stored configuration to a starting proxy while discovery is unreachable (docs/agent.md, X9). */

import { status } from '../../../src/model/status-codes.ts'
import { KeptAnswers, readFirst } from '../../../src/relay/kept-answers.ts'
import { WireError } from '../../../src/xds/slab/wire.ts'
import { BadFrame, FrameBuffers, FrameReader, messageFrame } from '../../../src/xds/stream/frames.ts'
import { requestFault } from '../../../src/xds/stream/request.ts'
import type { ScopedLogger } from '../../runtime/logger.ts'
import type { ConfigurationFile } from './configuration-file.ts'
import type { ProxyStream } from './proxy-stream.ts'

/** The maximum size of a request, in bytes. */
const requestBytes = 4_194_304

/**
 * `reading`: the stored configuration is being read; requests wait. `serving`: requests are answered from it. `over`: there is none for this
 * proxy, or it is not wanted any more.
 */
type State =
  | { readonly name: 'reading'; readonly waiting: Buffer[] }
  | { readonly name: 'serving'; readonly answers: KeptAnswers; readonly reader: FrameReader }
  | { readonly name: 'over' }

/** Serves one stream. */
export class StandIn {
  readonly #proxy: ProxyStream
  readonly #log: ScopedLogger
  #state: State = { name: 'over' }

  /** `requests` are the request bytes received so far. Serves when a configuration is stored for this proxy and the proxy has none yet. */
  constructor(proxy: ProxyStream, file: ConfigurationFile, log: ScopedLogger, requests: Buffer) {
    this.#proxy = proxy
    this.#log = log
    const first = readFirst(proxy.isDelta, requests)
    if (!first?.isFresh) return
    this.#state = { name: 'reading', waiting: [requests] }
    void this.#begin(file, first.nodeId)
  }

  /** Whether requests are answered from the stored configuration. */
  get isServing(): boolean {
    return this.#state.name === 'serving'
  }

  /** Processes bytes of requests. */
  request(bytes: Buffer): void {
    if (this.#state.name === 'reading') this.#state.waiting.push(bytes)
    else if (this.#state.name === 'serving') this.#answer(bytes)
  }

  /** Sends the proxy nothing from now on. */
  close(): void {
    this.#state = { name: 'over' }
  }

  async #begin(file: ConfigurationFile, nodeId: string): Promise<void> {
    const found = await file.read(nodeId)
    if (this.#state.name !== 'reading') return
    if (!found) return this.close()
    const { waiting } = this.#state
    const answers = new KeptAnswers(this.#proxy.isDelta, found.kept)
    this.#state = { name: 'serving', answers, reader: new FrameReader(requestBytes, new FrameBuffers()) }
    file.resume(found.kept)
    this.#log.warn(`discovery cannot be reached: the proxy starts with the configuration saved at ${new Date(found.writtenAt).toISOString()}`)
    for (const bytes of waiting) this.#answer(bytes)
  }

  #answer(bytes: Buffer): void {
    if (this.#state.name !== 'serving') return
    const { reader, answers } = this.#state
    try {
      reader.take(bytes, (message) => {
        const response = answers.answer(message)
        if (response) this.#proxy.write(messageFrame(response))
      })
    } catch (error) {
      if (!(error instanceof BadFrame || error instanceof WireError)) throw error
      this.#proxy.finish(status.invalidArgument, requestFault(error))
    }
  }
}
