/** Makes the CustomResourceDefinitions of the kinds (`charts/base/files/crds/`, `manifests/crds/`) from their declarations. */
import { stringify } from 'yaml'
import type { Kind } from '../src/config/kinds/kind.ts'
import { type KindName, kinds } from '../src/config/kinds.ts'
import type { Form } from '../src/config/shape.ts'
import { tlsModeNames } from '../src/names/mesh-names.ts'
import { fieldDescription, kindDescriptions } from './field-descriptions.ts'

/** A schema of OpenAPI 3, as definitions of an orchestrator have them. */
export type Schema = Readonly<Record<string, unknown>>

/** Fields that are not declared stay: what reads the object has to see them. */
const preserve = { 'x-kubernetes-preserve-unknown-fields': true }

/** The limits that shapes have where none is given; a schema need not repeat them. */
const usual = { text: 65_536, list: 20_000 }

/** The domain of the groups. */
const domain = 'mesh.io'

/** The short names of kinds, and the fields that a table of their objects shows. */
const tables: { readonly [Name in KindName]: { readonly short?: readonly string[]; readonly columns?: Readonly<Record<string, string>> } } = {
  VirtualService: { short: ['vs'], columns: { Gateways: '.spec.gateways', Hosts: '.spec.hosts' } },
  DestinationRule: { short: ['dr'], columns: { Host: '.spec.host' } },
  Gateway: { short: ['gw'], columns: { Selector: '.spec.selector' } },
  ServiceEntry: { short: ['se'], columns: { Hosts: '.spec.hosts', Location: '.spec.location', Resolution: '.spec.resolution' } },
  WorkloadEntry: { short: ['we'], columns: { Address: '.spec.address' } },
  WorkloadGroup: { short: ['wg'] },
  Sidecar: {},
  EnvoyFilter: {},
  AuthorizationPolicy: { short: ['ap'], columns: { Action: '.spec.action' } },
  RequestAuthentication: { short: ['ra'], columns: { Issuers: '.spec.jwtRules[*].issuer' } },
  PeerAuthentication: { short: ['pa'], columns: { Mode: '.spec.mtls.mode' } },
  Telemetry: { short: ['telemetry'] },
  ProxyConfig: {},
  WasmPlugin: {},
  TrafficExtension: {},
}

/** Returns the schema of a form. `path`: where it stands in its kind. */
function schemaOf(form: Form, path: string): Schema {
  switch (form.type) {
    case 'text':
      return {
        type: 'string',
        ...(form.max < usual.text ? { maxLength: form.max } : {}),
        ...(form.pattern ? { pattern: form.pattern.source } : {}),
      }
    case 'number':
      return { type: form.whole ? 'integer' : 'number', ...(form.whole ? { format: 'int64' } : {}), minimum: form.min, maximum: form.max }
    case 'duration':
      return { type: 'string' }
    case 'choice':
      return { type: 'string', enum: form.names.flatMap(tlsModeNames) }
    case 'flag':
      return { type: 'boolean' }
    case 'anything':
      return preserve
    case 'list':
      return {
        type: 'array',
        ...(form.min > 0 ? { minItems: form.min } : {}),
        ...(form.max < usual.list ? { maxItems: form.max } : {}),
        items: schemaOf(form.item, path),
      }
    case 'map':
      return form.item.type === 'anything' ? { type: 'object', ...preserve } : { type: 'object', additionalProperties: schemaOf(form.item, path) }
    case 'record':
      return recordSchema(form, path)
  }
}

function recordSchema({ fields, isStrict }: Extract<Form, { type: 'record' }>, path: string): Schema {
  const required = Object.entries(fields).flatMap(([name, field]) => (field.required ? [name] : []))
  const properties = Object.entries(fields).map(([name, { form, unused, only }]) => {
    const at = `${path}.${name}`
    const effect = unused !== undefined ? ` Has no effect yet: ${unused}.` : only !== undefined ? ` Works only ${only}.` : ''
    return [name, { description: `${fieldDescription(at)}${bounds(form)}${effect}`, ...schemaOf(form, at) }]
  })
  return {
    type: 'object',
    ...(required.length > 0 ? { required } : {}),
    properties: Object.fromEntries(properties),
    ...(isStrict ? preserve : {}),
  }
}

/** What a schema cannot say of a value, as a sentence. */
const bounds = (form: Form): string => (form.type === 'duration' ? ' A duration, such as 1h, 5s or 100ms.' : '')

/** Returns the schema of the spec of a kind. */
export const specSchema = ({ name, spec }: Kind<KindName>): Schema => ({
  description: 'What the object asks for.',
  ...schemaOf(spec.form, name),
})

/** Returns what a kind is for, and whether it has an effect. */
export const descriptionOf = ({ name, without }: Kind<KindName>): string =>
  `${kindDescriptions[name]}${without === undefined ? '' : ` Has no effect yet: ${without}.`}`

/** Whether objects of a kind must have a spec. */
export const hasRequiredFields = ({ spec }: Kind<KindName>): boolean =>
  spec.form.type === 'record' && Object.values(spec.form.fields).some((field) => field.required)

/** Returns the CustomResourceDefinition of a kind. All versions are served and have one schema; the last one is stored. */
function definitionOf(kind: Kind<KindName>): Schema {
  const { name, plural, group, versions } = kind
  const { short = [], columns = {} } = tables[name]
  const fullGroup = `${group}.${domain}`
  const schema = {
    description: descriptionOf(kind),
    type: 'object',
    ...(hasRequiredFields(kind) ? { required: ['spec'] } : {}),
    properties: {
      spec: specSchema(kind),
      status: { description: 'What the control plane says of the object.', type: 'object', ...preserve },
    },
    ...(group === 'security' ? preserve : {}),
  }
  const printed = [
    ...Object.entries(columns).map(([title, jsonPath]) => ({ name: title, type: 'string', jsonPath })),
    {
      name: 'Reconciled',
      type: 'string',
      jsonPath: '.status.conditions[?(@.type=="Reconciled")].status',
      description: 'Whether all proxies have it.',
    },
    { name: 'Age', type: 'date', jsonPath: '.metadata.creationTimestamp' },
  ]
  return {
    apiVersion: 'apiextensions.k8s.io/v1',
    kind: 'CustomResourceDefinition',
    metadata: { name: `${plural}.${fullGroup}`, labels: { app: 'pilot-discovery' } },
    spec: {
      group: fullGroup,
      scope: 'Namespaced',
      names: {
        kind: name,
        listKind: `${name}List`,
        plural,
        singular: name.toLowerCase(),
        ...(short.length > 0 ? { shortNames: short } : {}),
        categories: ['mesh-io', `${group}-mesh-io`],
      },
      versions: versions.map((version) => ({
        name: version,
        served: true,
        storage: version === versions.at(-1),
        schema: { openAPIV3Schema: schema },
        subresources: { status: {} },
        additionalPrinterColumns: printed,
      })),
    },
  }
}

const head = '# Made by "npm run tables" from the declaration of the kind in src/config/kinds/. Do not edit.\n'

/** Returns the files of `charts/base/files/crds/` and `manifests/crds/`, by name. */
export function definitionFiles(): Map<string, string> {
  return new Map(
    [...kinds.values()].map((kind) => [
      `${kind.plural}.${kind.group}.${domain}.yaml`,
      head + stringify(definitionOf(kind), { aliasDuplicateObjects: false, lineWidth: 150 }),
    ]),
  )
}
