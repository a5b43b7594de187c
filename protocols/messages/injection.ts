/** What the webhooks know of injection: its configuration, and the webhook configurations that lead to it. */

/** The texts of the configuration of injection. */
export interface InjectorTexts {
  readonly config: string
  readonly values: string
}

/** Watcher of a cluster to the webhooks: the ConfigMap with the configuration of injection, whenever another one is in force. */
export interface InjectorEvent {
  readonly type: 'InjectorChanged'
  /** The object, for people. */
  readonly place: string
  /** Undefined: there is none any more. */
  readonly texts: InjectorTexts | undefined
}

/** A webhook of a configuration: its name, its CA bundle, as it is written there (base64), and the path that it asks, of its Service or URL. */
export interface CalledWebhook {
  readonly name: string
  readonly bundle: string
  readonly path: string
}

/** Watcher of a cluster to the webhooks: a MutatingWebhookConfiguration with injection webhooks of this revision; undefined: it is gone, or not one. */
export interface InjectorWebhooksEvent {
  readonly type: 'InjectorWebhooksChanged'
  /** The other cluster that has it; undefined: the own one. */
  readonly cluster?: string | undefined
  readonly name: string
  readonly state: { readonly uid: string; readonly webhooks: readonly CalledWebhook[] } | undefined
}

/** Push queue to the webhooks: the mesh configuration in force. */
export interface MeshSettingsEvent {
  readonly type: 'MeshSettingsChanged'
  /** A `MeshConfig` value. */
  readonly mesh: object
}

/** Asks the main thread to write the CA bundle of some webhooks. */
export interface BundleOrder {
  /** The other cluster that has it; undefined: the own one. */
  readonly cluster?: string | undefined
  /** The MutatingWebhookConfiguration, and which it is: another one of the same name is left alone. */
  readonly name: string
  readonly uid: string
  /** The webhooks by their places in it, and their names. */
  readonly webhooks: readonly { readonly index: number; readonly name: string }[]
  /** PEM in base64. */
  readonly bundle: string
}

/** Whether it was written; the reason why it was not, which is empty if it was. */
export interface BundleOutcome {
  readonly result: 'written' | 'gone' | 'failed'
  readonly reason: string
}

/** What `pilot-discovery inject` is to do: the values of its flags. Empty text: not given. */
export interface InjectOrder {
  /** The file with the documents; `-`: standard input. */
  readonly filename: string
  /** The namespace of objects that name none. */
  readonly namespace: string
  readonly output: string
  readonly injectConfig: string
  readonly values: string
  readonly meshConfig: string
  readonly orchconfig: string
  readonly meshNamespace: string
  readonly revision: string
  readonly nativeSidecars: boolean
  /** Whether the documents are written as a List in JSON, in place of each as it was written. */
  readonly json: boolean
}
