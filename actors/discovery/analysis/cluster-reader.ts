/** Lists objects of a cluster with the rights of whoever asks. Nothing is written, and of Secrets only the metadata is asked for. */
import { isMapping, mapping } from '../../../src/config/shape.ts'
import { formatOf } from '../../../src/orchestrator/object-format.ts'
import { listPath } from '../../../src/orchestrator/resources.ts'
import { refusalOf } from '../../../src/orchestrator/responses.ts'
import { deadlineAfter, pause } from '../../runtime/timers.ts'
import type { ApiSession } from '../cluster/api-session.ts'

type Mapping = Readonly<Record<string, unknown>>

/** A request that failed. `code`: the HTTP status; 0: the server was not reached, or its answer cannot be read. */
export class Unread extends Error {
  readonly code: number
  readonly askedMs: number

  constructor(message: string, code: number, askedMs = 0) {
    super(message)
    this.code = code
    this.askedMs = askedMs
  }
}

/** The longest object, refusal and description of an API in bytes, the longest time of an answer, and the attempts and pauses of a request. */
const most = { object: 16 * 1024 * 1024, refusal: 65_536, description: 4 * 1024 * 1024, answerMs: 60_000, attempts: 3, pauseMs: 500, askedMs: 10_000 }

/** What is accepted of the objects of a list: all of them, or their metadata. */
const accepted = { objects: 'application/json', metadata: 'application/json;as=PartialObjectMetadataList;g=meta.k8s.io;v=v1,application/json' }

/** Reads from an API server. */
export class ClusterReader {
  readonly #session: Pick<ApiSession, 'send' | 'refused'>

  constructor(session: Pick<ApiSession, 'send' | 'refused'>) {
    this.#session = session
  }

  /** Calls `take` with each object at a path; an object may come twice. Rejects with {@link Unread}. */
  async list(path: string, part: keyof typeof accepted, take: (object: Mapping) => void): Promise<void> {
    for (let attempt = 1; ; attempt++) {
      try {
        for (let next: string | undefined = ''; next !== undefined; ) {
          const at: string = next
          const { objects, token } = await this.#retried(() => this.#page(listPath(path, { mode: 'page', next: at }), accepted[part]))
          for (const object of objects) take(object)
          next = token === '' ? undefined : token
        }
        return
      } catch (error) {
        // The state of the list is gone: it is begun again.
        if (!(error instanceof Unread && error.code === 410) || attempt >= most.attempts) throw error
      }
    }
  }

  /** Returns a description of the API; undefined: there is none at this path. Rejects with {@link Unread}. */
  async description(path: string): Promise<Mapping | undefined> {
    try {
      return await this.#retried(() => this.#described(path))
    } catch (error) {
      if (error instanceof Unread && error.code === 404) return undefined
      throw error
    }
  }

  async #retried<T>(request: () => Promise<T>): Promise<T> {
    for (let attempt = 1; ; attempt++) {
      try {
        return await request()
      } catch (error) {
        const { code, askedMs } = error as Unread
        if (code === 401 && attempt === 1) this.#session.refused()
        else if (attempt >= most.attempts || !(code === 0 || code === 429 || code >= 500)) throw error
        if (code !== 401) await pause(Math.min(askedMs || most.pauseMs * 2 ** attempt, most.askedMs))
      }
    }
  }

  #page(path: string, accept: string): Promise<{ objects: Mapping[]; token: string }> {
    const reader = formatOf(undefined, undefined).list(most.object)
    const objects: Mapping[] = []
    return this.#exchange(
      path,
      accept,
      (bytes) => void objects.push(...reader.take(bytes)),
      () => ({ objects, token: reader.end().next }),
    )
  }

  #described(path: string): Promise<Mapping> {
    const parts: Uint8Array[] = []
    let length = 0
    const take = (bytes: Uint8Array) => {
      length += bytes.length
      if (length > most.description) throw new Error(`the answer has more than ${most.description} bytes`)
      parts.push(bytes)
    }
    return this.#exchange(path, accepted.objects, take, () => mapping(JSON.parse(Buffer.concat(parts).toString('utf8'))))
  }

  /** Sends a request. `take` gets the bytes of an answer that is a success, and `end` makes the result of them. */
  #exchange<T>(path: string, accept: string, take: (bytes: Uint8Array) => void, end: () => T): Promise<T> {
    return new Promise((resolve, reject) => {
      const refusal: Uint8Array[] = []
      let [status, length] = [0, 0]
      let retryAfter: string | undefined
      const fail = (reason: string, code: number, askedMs = 0) => {
        late.cancel()
        reject(new Unread(reason, code, askedMs))
      }
      const request = this.#session.send(
        { method: 'GET', path, accept },
        {
          answered: (code, headers) => {
            status = code
            retryAfter = headers['retry-after']
          },
          received: (bytes) => {
            if (status < 300) return take(bytes)
            length += bytes.length
            if (length > most.refusal) throw new Error(`the refusal has more than ${most.refusal} bytes`)
            refusal.push(bytes)
          },
          ended: () => {
            if (status >= 300) {
              const { reason, askedMs } = refusalOf(status, messageIn(Buffer.concat(refusal)), retryAfter)
              return fail(reason, status, askedMs)
            }
            late.cancel()
            try {
              resolve(end())
            } catch (error) {
              reject(new Unread((error as Error).message, 0))
            }
          },
          broken: (reason) => fail(reason, 0),
        },
      )
      const late = deadlineAfter(most.answerMs, () => {
        request.abandon()
        fail(`no answer within ${most.answerMs / 1000} s`, 0)
      })
    })
  }
}

function messageIn(body: Buffer): unknown {
  try {
    const value: unknown = JSON.parse(body.toString('utf8'))
    return isMapping(value) ? value.message : undefined
  } catch {
    return undefined
  }
}
