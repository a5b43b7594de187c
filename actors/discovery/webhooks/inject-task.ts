/** Pool task: injects the pod of one review that is large, or whose templates call slow functions. */
import type { InjectorTexts } from '../../../protocols/messages/injection.ts'
import { decidePod, type PodVerdict } from '../../../src/inject/admit-pod.ts'
import { type InjectionConfiguration, readInjectionConfiguration } from '../../../src/inject/configuration.ts'
import type { InjectionSettings } from '../../../src/inject/inject-pod.ts'
import { meshNames } from '../../../src/names/mesh-names.ts'
import { readReview, reviewText, unreadText } from '../../../src/orchestrator/admission-review.ts'
import { templateLibrary } from './template-library.ts'

/** A review to answer: its JSON, what follows `/inject/` in the path, and what injection depends on. */
export interface InjectTask {
  readonly body: Uint8Array
  readonly rest: string
  readonly texts: InjectorTexts
  readonly settings: Omit<InjectionSettings, 'configuration' | 'names'>
  readonly domain: string
}

/** An answered review. */
export interface InjectedReview {
  /** The JSON of the answer. */
  readonly text: string
  /** What came of it, without the answer; undefined where the review cannot be read. */
  readonly verdict: Omit<PodVerdict, 'answer'> | undefined
}

/** The configuration that was last read on this thread. */
let known: { readonly config: string; readonly values: string; readonly configuration: InjectionConfiguration } | undefined

/** Runs on a thread of the pool. */
export default function inject({ body, rest, texts, settings, domain }: InjectTask): InjectedReview {
  const review = readReview(body)
  if ('fault' in review) return { text: unreadText(review), verdict: undefined }
  const { answer, ...verdict } = decidePod(review.request, rest, { ...settings, configuration: configurationOf(texts), names: meshNames(domain) })
  return { text: reviewText(review.apiVersion, review.request.uid, answer), verdict }
}

function configurationOf(texts: InjectorTexts): InjectionConfiguration {
  if (known?.config === texts.config && known.values === texts.values) return known.configuration
  const read = readInjectionConfiguration(texts, templateLibrary())
  if ('error' in read) throw new Error(read.error)
  known = { config: texts.config, values: texts.values, configuration: read.configuration }
  return read.configuration
}
