/**
 * Tells the analyzer which Secrets there are in the namespaces whose Secrets are followed, and which keys they have: never their values
 * (`SecretsSeen`; docs/analysis.md, Y4). Of a namespace that has not been listed, or cannot be read, nothing is known.
 */
import type { SecretFacts } from '../../../../protocols/messages/analysis.ts'
import { keysOfSecret } from '../../../../src/config/secret-document.ts'
import type { SeenReports } from '../seen-reports.ts'

/** The Secrets of a namespace. */
interface Known {
  readonly secrets: Map<string, SecretFacts>
  /** Whether it is known that there are no others. */
  isRead: boolean
  hasChanged: boolean
}

/** The Secrets that a cluster's watcher has read. */
export class SeenSecrets {
  readonly #reports: SeenReports
  readonly #cluster: string
  readonly #namespaces = new Map<string, Known>()

  constructor(reports: SeenReports, cluster: string) {
    this.#reports = reports
    this.#cluster = cluster
  }

  /** A Secret was read, whether gateways can use it or not. */
  read(namespace: string, name: string, value: Readonly<Record<string, unknown>>): void {
    const known = this.#known(namespace)
    const keys = keysOfSecret(value)
    if (known.secrets.get(name)?.keys?.join() === keys.join()) return
    known.secrets.set(name, { name, keys })
    known.hasChanged = true
  }

  /** A Secret is gone. */
  removed(namespace: string, name: string): void {
    const known = this.#namespaces.get(namespace)
    if (known?.secrets.delete(name)) known.hasChanged = true
  }

  /** A namespace is followed no more, or listed again. */
  forget(namespace: string): void {
    if (this.#namespaces.delete(namespace)) this.#reports.tell({ type: 'SecretsSeen', cluster: this.#cluster, namespace, secrets: undefined })
  }

  /** Tells what has changed. `isRead`: whether a namespace has been listed and can be read. */
  settled(namespaces: Iterable<string>, isRead: (namespace: string) => boolean): void {
    for (const namespace of namespaces) {
      const known = this.#known(namespace)
      const isReadNow = isRead(namespace)
      if (isReadNow === known.isRead && !(isReadNow && known.hasChanged)) continue
      known.isRead = isReadNow
      known.hasChanged = false
      const secrets = isReadNow ? [...known.secrets.values()] : undefined
      this.#reports.tell({ type: 'SecretsSeen', cluster: this.#cluster, namespace, secrets })
    }
  }

  #known(namespace: string): Known {
    const known = this.#namespaces.get(namespace) ?? { secrets: new Map(), isRead: false, hasChanged: false }
    this.#namespaces.set(namespace, known)
    return known
  }
}
