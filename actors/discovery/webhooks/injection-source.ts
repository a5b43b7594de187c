/**
 * The configuration of injection in force: that of files, else of the ConfigMap of the cluster (docs/injection.md, N1 and N2). What cannot be used,
 * or is gone, keeps the last good one.
 */
import { join } from 'node:path'
import type { InjectorEvent, InjectorTexts } from '../../../protocols/messages/injection.ts'
import { type InjectionConfiguration, readInjectionConfiguration } from '../../../src/inject/configuration.ts'
import { readIfThere } from '../../runtime/bounded-file.ts'
import { FilesWatch } from '../../runtime/files-watch.ts'
import type { ScopedLogger } from '../../runtime/logger.ts'
import { after, type Timer } from '../../runtime/timers.ts'
import { injectorDirectory } from './injector-directory.ts'
import { templateLibrary } from './template-library.ts'

/** How long another text waits for one that belongs to it, in milliseconds. */
const quietMs = 100
/** The most bytes of a file. */
const most = 2 * 1024 * 1024

/** What is in force, for the page. */
export interface InjectionState {
  /** Where the configuration is; empty: there is none. */
  readonly place: string
  readonly texts: InjectorTexts | undefined
  readonly configuration: InjectionConfiguration | undefined
  /** Why a newer one is not in force; empty: there is none. */
  readonly fault: string
}

/** Who is told of the configuration. */
export interface InjectionListener {
  /** Takes what is wrong with it. */
  noted(faults: readonly string[]): void
  /** Called after another one is in force. */
  taken(): void
}

/** Follows the configuration. */
export class InjectionSource {
  readonly #log: ScopedLogger
  readonly #listener: InjectionListener
  readonly #files: FilesWatch
  #ofFiles: { readonly place: string; readonly texts: InjectorTexts } | undefined
  #ofCluster: { readonly place: string; readonly texts: InjectorTexts } | undefined
  #state: InjectionState = { place: '', texts: undefined, configuration: undefined, fault: '' }
  #quiet: Timer | undefined
  /** Whether it is known of the files, and of the ConfigMap, whether they exist. */
  readonly #looked = { files: false, cluster: false }
  readonly #known = Promise.withResolvers<void>()
  #isKnown = false
  /** The texts that were last read, with their place. */
  #taken = ''

  /** `hasCluster`: whether there is one, which says of its ConfigMap whether it exists. */
  constructor(log: ScopedLogger, listener: InjectionListener, hasCluster: boolean, directory = injectorDirectory) {
    this.#log = log
    this.#listener = listener
    this.#looked.cluster = !hasCluster
    const [config, values] = [join(directory, 'config'), join(directory, 'values')]
    this.#files = new FilesWatch([config, values], {
      read: async () => {
        const [given, more] = [await readIfThere(config, { most }), await readIfThere(values, { most })]
        this.#ofFiles = given === undefined ? undefined : { place: config, texts: { config: given, values: more ?? '' } }
        this.#looked.files = true
        this.#take()
      },
      refused: (reason) => this.#refuse(reason),
      unwatchable: (path, error) => this.#log.warn(`${path} cannot be watched: ${error.message}; it is read every 10 s`),
    })
  }

  get state(): InjectionState {
    return this.#state
  }

  /** Whether it is known what is in force. Until then, pods must not pass without a sidecar: those of a process before this one got theirs. */
  get isKnown(): boolean {
    return this.#isKnown
  }

  /** Resolves when it is known, or after some milliseconds. */
  async known(ms: number): Promise<void> {
    const { promise, resolve } = Promise.withResolvers<void>()
    const timer = after(ms, resolve)
    await Promise.race([this.#known.promise, promise])
    timer.cancel()
  }

  receive({ place, texts }: InjectorEvent): void {
    if (texts === undefined && this.#ofCluster) this.#log.warn(`${place} is gone; the last good configuration of injection stays in force`)
    this.#ofCluster = texts && { place, texts }
    this.#looked.cluster = true
    this.#quiet?.cancel()
    this.#quiet = after(quietMs, () => this.#take()).unref()
  }

  close(): void {
    this.#quiet?.cancel()
    this.#files.close()
  }

  #take(): void {
    const before = this.#state.configuration
    this.#read()
    const isNone = this.#looked.files && this.#looked.cluster && !this.#given
    this.#isKnown ||= this.#state.configuration !== undefined || isNone
    if (this.#isKnown) this.#known.resolve()
    // Pods that were waiting are first.
    if (this.#state.configuration !== before) after(0, () => this.#listener.taken())
  }

  get #given(): { readonly place: string; readonly texts: InjectorTexts } | undefined {
    return this.#ofFiles ?? this.#ofCluster
  }

  #read(): void {
    const given = this.#given
    const key = JSON.stringify(given)
    if (!given || key === this.#taken) return
    this.#taken = key
    const read = readInjectionConfiguration(given.texts, templateLibrary())
    if ('error' in read) return this.#refuse(`${given.place}: ${read.error}`)
    for (const warning of read.warnings) this.#log.warn(`${given.place}: ${warning}`)
    this.#log.info(`pods are injected by ${given.place}`)
    this.#state = { ...given, configuration: read.configuration, fault: '' }
    this.#listener.noted([])
  }

  #refuse(reason: string): void {
    const without = this.#isKnown ? 'no pod gets a sidecar' : 'pods are refused'
    const consequence = this.#state.configuration ? 'the last good configuration of injection stays in force' : without
    this.#state = { ...this.#state, fault: reason }
    this.#log.error(`${reason}; ${consequence}`)
    this.#listener.noted([`${reason}; ${consequence}`])
  }
}
