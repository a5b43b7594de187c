/** A real Chromium without a window, driven by its DevTools protocol. */
import { type ChildProcess, spawn, spawnSync } from 'node:child_process'
import { mkdtempSync, rmSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { Output } from './output.ts'
import { until } from './until.ts'

/** Returns the browser's program: `CHROMIUM_BIN`, or one in `PATH`. Undefined without one; under `CI=true` that is an error. */
export function chromium(): string | undefined {
  const names = process.env.CHROMIUM_BIN ? [process.env.CHROMIUM_BIN] : ['chromium', 'chromium-browser', 'google-chrome']
  const found = names.find((name) => spawnSync(name, ['--version']).status === 0)
  if (found === undefined && process.env.CI === 'true') throw new Error('there is no Chromium (Debian package chromium, or CHROMIUM_BIN)')
  return found
}

/** What a page answered when it was opened. */
interface Opened {
  readonly status: number
  readonly type: string
}

type Event = { readonly method: string; readonly params: Record<string, unknown> }

/** A browser with one tab. It looks up and fetches nothing but what it is told to open. */
export class Browser {
  readonly #profile = mkdtempSync(join(tmpdir(), 'mesh-browser-'))
  readonly #output = new Output()
  readonly #child: ChildProcess
  readonly #waiting = new Map<number, { resolve: (value: Record<string, unknown>) => void; reject: (error: Error) => void }>()
  readonly #events: Event[] = []
  #socket: WebSocket | undefined
  #session: string | undefined
  #last = 0
  /** Whether questions of pages are answered with yes, and the questions so far. */
  agrees = false
  readonly questions: string[] = []

  constructor(program: string, { width, height }: { readonly width: number; readonly height: number }) {
    const quiet = [
      '--disable-gpu',
      '--disable-quic',
      '--no-first-run',
      '--disable-background-networking',
      '--disable-component-update',
      '--disable-sync',
    ]
    const place = ['--remote-debugging-port=0', `--user-data-dir=${this.#profile}`, `--window-size=${width},${height}`]
    // Chromium refuses its sandbox to root.
    const root = process.getuid?.() === 0 ? ['--no-sandbox'] : []
    this.#child = spawn(program, ['--headless', ...quiet, ...place, ...root, 'about:blank'])
    this.#output.follow(this.#child)
  }

  /** Connects with the browser, and opens a tab. */
  async start(): Promise<void> {
    const [, url = ''] = await this.#output.says(/DevTools listening on (ws:\S+)/)
    const socket = new WebSocket(url)
    this.#socket = socket
    socket.onmessage = ({ data }) => this.#take(JSON.parse(String(data)))
    await new Promise((resolve, reject) => {
      socket.onopen = resolve
      socket.onerror = () => reject(new Error('the browser cannot be reached'))
    })
    const { targetId } = await this.#call('Target.createTarget', { url: 'about:blank' })
    const { sessionId } = await this.#call('Target.attachToTarget', { targetId, flatten: true })
    this.#session = sessionId as string
    for (const domain of ['Page', 'Network', 'Runtime']) await this.#call(`${domain}.enable`, {})
  }

  /** Sends headers with all requests from now on. */
  async send(headers: Readonly<Record<string, string>>): Promise<void> {
    await this.#call('Network.setExtraHTTPHeaders', { headers })
  }

  /** Opens a page, as its address in the bar does, and returns what the server answered. */
  async open(url: string): Promise<Opened> {
    this.#events.length = 0
    const { errorText } = await this.#call('Page.navigate', { url })
    if (errorText !== undefined) throw new Error(`${url}: ${errorText}`)
    return this.#loaded()
  }

  /** Clicks an element with the mouse where it is on the screen. */
  async click(selector: string): Promise<void> {
    const place = await this.evaluate<{ x: number; y: number } | null>(
      `(() => { const one = document.querySelector(${JSON.stringify(selector)}); if (!one) return null; one.scrollIntoView(); const { x, y, width, height } = one.getBoundingClientRect(); return { x: x + width / 2, y: y + height / 2 } })()`,
    )
    if (place === null) throw new Error(`the page has no ${selector}`)
    for (const type of ['mousePressed', 'mouseReleased'])
      await this.#call('Input.dispatchMouseEvent', { type, ...place, button: 'left', clickCount: 1 })
  }

  /** Clicks a link, and returns what the server answered. */
  async follow(selector: string): Promise<Opened> {
    this.#events.length = 0
    await this.click(selector)
    return this.#loaded()
  }

  /** Evaluates an expression in the page, and returns its value. */
  async evaluate<Value>(expression: string): Promise<Value> {
    const { result, exceptionDetails } = await this.#call('Runtime.evaluate', { expression, returnByValue: true, awaitPromise: true })
    if (exceptionDetails !== undefined) throw new Error(JSON.stringify(exceptionDetails))
    return (result as { value: Value }).value
  }

  async dispose(): Promise<void> {
    this.#socket?.close()
    this.#child.kill('SIGKILL')
    await this.#output.whole()
    rmSync(this.#profile, { recursive: true, force: true, maxRetries: 10 })
  }

  /** Waits until the page that is being opened is there, and returns what its document was answered with. */
  async #loaded(): Promise<Opened> {
    await until('the page to be loaded', () => this.#events.some(({ method }) => method === 'Page.loadEventFired'))
    const answers = this.#events.filter(({ method, params }) => method === 'Network.responseReceived' && params.type === 'Document')
    const response = answers.at(-1)?.params.response as { status: number; mimeType: string } | undefined
    if (response === undefined) throw new Error('the document was not answered')
    return { status: response.status, type: response.mimeType }
  }

  #take({ id, result, error, ...event }: { id?: number; result?: Record<string, unknown>; error?: { message: string } } & Event): void {
    const waiting = id === undefined ? undefined : this.#waiting.get(id)
    if (id !== undefined) this.#waiting.delete(id)
    if (error) waiting?.reject(new Error(error.message))
    else waiting?.resolve(result ?? {})
    if (event.method === 'Page.javascriptDialogOpening') {
      this.questions.push(String(event.params.message))
      void this.#call('Page.handleJavaScriptDialog', { accept: this.agrees })
    } else if (event.method !== undefined) this.#events.push(event)
  }

  #call(method: string, params: object): Promise<Record<string, unknown>> {
    const id = ++this.#last
    this.#socket?.send(JSON.stringify({ id, method, params, ...(this.#session === undefined ? {} : { sessionId: this.#session }) }))
    return new Promise((resolve, reject) => this.#waiting.set(id, { resolve, reject }))
  }
}
