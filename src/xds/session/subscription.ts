/** What a proxy has subscribed to. Equal subscriptions of different proxies are one object, so that what is worked out for one holds for all. */
import { hash } from 'node:crypto'
import { LRUCache } from 'lru-cache'
import { virtualHostType } from '../type-urls.ts'
import { namesIn } from './request.ts'

/** A set of resource names, or everything. */
export interface Subscription {
  readonly id: number
  readonly wildcard: boolean
  readonly names: ReadonlySet<string>
  /** The bytes of the request that it came from; an equal request need not be read again. */
  readonly raw: Buffer
}

let nextId = 1

/** What a delta request asks for in addition. */
export interface Asked {
  readonly raw: Buffer
  readonly named: readonly string[]
  readonly everything: boolean
}

/** Lists up to this many bytes are not worth remembering. */
const shortList = 256

const nothingAsked: Asked = { raw: Buffer.alloc(0), named: [], everything: false }

/** Makes subscriptions, equal ones only once. */
export class Subscriptions {
  readonly #known = new LRUCache<string, Subscription>({ max: 4096 })
  /** The last long list that was asked for: proxies that are alike ask for the same. */
  #last: Subscription = everything
  #lastAsked: Asked = nothingAsked

  /** The subscription that a list of names in a request means. `raw` are the name fields as they came. */
  of(raw: Buffer, names: () => Iterable<string>, wildcard: boolean): Subscription {
    if (raw.length > 0 && wildcard === this.#last.wildcard && this.#last.raw.equals(raw)) return this.#last
    const subscription = this.#get(`${wildcard}|${hash('sha1', raw, 'base64')}`, raw, names, wildcard)
    if (raw.length > shortList) this.#last = subscription
    return subscription
  }

  /** Names in a delta request, and whether it asks for everything (`*`). An equal list, as the next proxy's often is, is read once. */
  asked(raw: Buffer): Asked {
    if (raw.length === 0) return nothingAsked
    if (this.#lastAsked.raw.equals(raw)) return this.#lastAsked
    const names = [...namesIn(raw)]
    const asked = { raw: Buffer.from(raw), named: names.filter((name) => name !== '*'), everything: names.includes('*') }
    // A short list is read in no time, and must not take the place of a long one.
    if (raw.length > shortList) this.#lastAsked = asked
    return asked
  }

  /** A subscription with names added and removed. */
  derive(from: Subscription, add: readonly string[], remove: readonly string[], wildcard: boolean): Subscription {
    const key = `${from.id}|${wildcard}|${hash('sha1', JSON.stringify([add, remove]), 'base64')}`
    return this.#get(
      key,
      Buffer.alloc(0),
      () => {
        const names = new Set(from.names)
        for (const name of remove) names.delete(name)
        for (const name of add) names.add(name)
        return names
      },
      wildcard,
    )
  }

  #get(key: string, raw: Buffer, names: () => Iterable<string>, wildcard: boolean): Subscription {
    let known = this.#known.get(key)
    if (!known) {
      known = { id: nextId++, wildcard, names: new Set(names()), raw: Buffer.from(raw) }
      this.#known.set(key, known)
    }
    return known
  }
}

/** Whether a subscription takes a resource. A virtual host, `80/a.example:80`, also comes with its route, `80`: that is what proxies ask for (VHDS). */
export function takes({ wildcard, names }: Pick<Subscription, 'wildcard' | 'names'>, typeUrl: string, name: string): boolean {
  if (wildcard || names.has(name)) return true
  return typeUrl === virtualHostType && names.has(routeOf(name))
}

const routeOf = (host: string): string => host.slice(0, Math.max(0, host.lastIndexOf('/')))

/** Whether a name stands for a resource, and not for the hosts of a route. */
export function isResourceName(typeUrl: string, name: string): boolean {
  return typeUrl !== virtualHostType || name.includes('/')
}

/** Everything. */
export const everything: Subscription = { id: 0, wildcard: true, names: new Set(), raw: Buffer.alloc(0) }
