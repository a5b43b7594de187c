/** The answer about a resource of a proxy, of which `mesh.admin.v1.AdminService` and `/debug/explain` are two views. */
import type { Explained, ExplainInput } from '../../../protocols/messages/explain.ts'
import { shortTypes } from '../../../src/xds/type-urls.ts'
import type { ConnectionStatus } from '../xds-writer/connection-debug.ts'
import type { Sees } from './mesh-answers.ts'
import type { PageSources, Placed } from './page-sources.ts'

/** The types that can be explained, by short name. */
export const explainedTypes: ReadonlyMap<string, string> = new Map(
  ['cds', 'eds', 'lds', 'rds', 'vhds'].map((short) => [short, shortTypes.get(short) as string]),
)

/** An explanation as a caller sees it. */
export interface ExplainAnswer extends Explained {
  /** The number of considered objects that are of namespaces that the caller may not see. */
  readonly hidden: number
}

/** Explains a resource of a proxy; a string says why that is not possible. `type`: a type URL, or `cds`, `eds`, `lds`, `rds`, `vhds`. */
export async function explainedFor(
  sources: PageSources,
  proxy: Placed<ConnectionStatus>,
  type: string,
  name: string,
  sees: Sees,
): Promise<ExplainAnswer | string> {
  const typeUrl = explainedTypes.get(type) ?? type
  if (![...explainedTypes.values()].includes(typeUrl))
    return `type: ${JSON.stringify(type.slice(0, 100))} is none of ${[...explainedTypes.keys()].join(', ')} and their type URLs`
  if (name === '' || name.length > longestName) return `name: a name of at most ${longestName} characters is required`
  const elsewhere = sources.elsewhere(proxy)
  const answer = elsewhere
    ? ((await elsewhere.ask('explainResource', proxy.connectionId, typeUrl, name)) as Explained | null)
    : await explainedHere(sources, proxy, typeUrl, name)
  if (!answer) return 'the configuration of this proxy is not known yet'
  // What made a resource that the proxy has is no secret to its namespace.
  const objects = answer.objects.filter(({ without, namespace }) => without !== 'same' || sees(namespace))
  return { ...answer, objects, hidden: answer.objects.length - objects.length }
}

/** The explanation of a resource of a proxy of this replica; undefined: its configuration is not known yet. */
export async function explainedHere(
  sources: PageSources,
  proxy: Pick<ConnectionStatus, 'connectionId'>,
  typeUrl: string,
  name: string,
): Promise<Explained | undefined> {
  const input = (await sources.ofProxy('explainInput', proxy, typeUrl, name)) as ExplainInput | Record<string, never>
  return 'node' in input ? sources.explanations.explain(input as ExplainInput) : undefined
}

/** Maximum length of the name of a resource, in characters. */
const longestName = 4096
