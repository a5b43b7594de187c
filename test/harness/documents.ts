/** Generates documents of every kind from the shapes of their specs, so that a new kind is covered without a change here. */
import fc from 'fast-check'
import { stringify } from 'yaml'
import type { Kind } from '../../src/config/kinds/kind.ts'
import { kinds } from '../../src/config/kinds.ts'
import type { Form, Report } from '../../src/config/shape.ts'

/** Texts that are valid in some field. */
const words = [
  'a',
  'b',
  'a.fuzz.svc.cluster.local',
  'b.fuzz.svc.cluster.local',
  '*.fuzz.svc.cluster.local',
  'x.example.com',
  'mesh',
  'fuzz/g',
  'g',
  '.',
  '*',
  '~',
  'fuzz',
  '10.1.0.1',
  '10.0.0.1',
  '10.2.0.0/16',
  '::1',
  'unix:///tmp/s',
  'HTTP',
  'HTTPS',
  'TCP',
  'TLS',
  'GRPC',
  'http',
  'tcp',
  'v1',
  'region/zone',
  '/path',
  '/etc/cert.pem',
  'constructor',
  '__proto__',
  'toString',
  '',
  'é\u0000\n\u202e',
] as const

/** Texts that a proxy may reject: names and values of headers, formats, hosts, and addresses in unusual spellings. */
export const oddWords = [
  'x-user',
  'X_User',
  ':authority',
  ':path',
  'Host',
  'host',
  'content-length',
  'transfer-encoding',
  'connection',
  'set-cookie',
  'a b',
  ' a',
  'a\tb',
  'a\r\nb',
  'a\u0000b',
  '%',
  '100%',
  '%REQ(',
  '%REQ(X)%',
  '%START_TIME%',
  '%NO_SUCH%',
  '%%',
  'a,b',
  '-',
  '_',
  '/',
  '//',
  '/a//b',
  '/x?y=1',
  '/x#y',
  '*.',
  '*.*',
  '*a',
  'a*',
  '-a.example.com',
  'A.Example.com.',
  'xn--e1afmkfd.example.com',
  'é.example.com',
  '127.1',
  '010.001.0.1',
  '::ffff:1.2.3.4',
  'fe80::1%eth0',
  '0.0.0.0/0',
  '::/0',
  '255.255.255.255',
  '127.0.0.1',
  '0.0.0.0',
  '::',
  '[::1]',
  'x'.repeat(64),
  'x'.repeat(300),
  `${'x'.repeat(60)}.`.repeat(4),
  `unix://${'x'.repeat(120)}`,
  'unix://@abstract',
  'localhost',
  '\\1',
  '\\9',
  '{a}',
  '"',
  '\ufeff',
] as const

/** Values that are invalid in every field. */
const junk: fc.Arbitrary<unknown> = fc.oneof(
  fc.constantFrom<unknown>(
    Number.NaN,
    Number.POSITIVE_INFINITY,
    Number.NEGATIVE_INFINITY,
    -1,
    -0,
    0.5,
    1e308,
    2 ** 32,
    2 ** 53,
    null,
    true,
    '',
    'abc',
    '\ud800',
    '9'.repeat(400),
    'x'.repeat(70_000),
    [],
    {},
    [null],
    [[]],
    { seconds: 'abc' },
    { seconds: 1e300, nanos: -1 },
    { exact: 1, prefix: 2 },
    JSON.parse('{"__proto__": {"polluted": true}, "constructor": 1, "toString": "x"}'),
  ),
  fc.integer({ min: 1, max: 90 }).map((depth) => {
    let deep: unknown = 'bottom'
    for (let i = 0; i < depth; i++) deep = i % 2 === 0 ? { a: deep } : [deep]
    return deep
  }),
  fc.double(),
  fc.string({ unit: 'binary', maxLength: 20 }),
)

const keys = fc.constantFrom(...words.filter((word) => word !== ''), '80', '8080', '', 'app')

/** Generates values of a form. About `broken` percent of the parts are replaced by invalid ones. */
function fillingOf(form: Form, broken: number, depth = 0): fc.Arbitrary<unknown> {
  const value = arbitraryOf(form, broken, depth)
  return broken === 0 ? value : fc.oneof({ weight: 100 - broken, arbitrary: value }, { weight: broken, arbitrary: junk })
}

function arbitraryOf(form: Form, broken: number, depth: number): fc.Arbitrary<unknown> {
  switch (form.type) {
    case 'text':
      if (form.examples) return fc.constantFrom(...form.examples)
      return form.pattern
        ? fittingText(form.pattern, form.max)
        : fc.oneof({ weight: 3, arbitrary: fitting(words, form.max) }, { weight: 1, arbitrary: fitting(oddWords, form.max) })
    case 'number': {
      const near = [form.min, form.max, 0, 1, 80, 8080, 10].filter((n) => n >= form.min && n <= form.max)
      const any = form.whole
        ? fc.integer({ min: Math.max(form.min, -(2 ** 31)), max: Math.min(form.max, 2 ** 31 - 1) })
        : fc.double({ min: form.min, max: form.max, noNaN: true })
      return fc.oneof(fc.constantFrom(...near), any)
    }
    case 'duration': {
      const fitting = [form.minMs, form.maxMs, 1, 1000, 0.5, 3_600_000].filter((ms) => ms >= form.minMs && ms <= form.maxMs)
      return fc
        .constantFrom(...fitting)
        .chain((ms) => fc.constantFrom<unknown>(`${ms}ms`, { seconds: Math.floor(ms / 1000), nanos: Math.round((ms % 1000) * 1e6) }))
    }
    case 'choice':
      return fc.constantFrom(...form.names)
    case 'flag':
      return fc.boolean()
    case 'anything':
      return fc.oneof({ weight: 3, arbitrary: messages }, { weight: 1, arbitrary: fc.jsonValue({ maxDepth: 3 }) })
    case 'list': {
      const list = fc.array(fillingOf(form.item, broken, depth + 1), { minLength: form.min, maxLength: Math.max(form.min, 2) })
      return list.chain((items) => fc.constantFrom(items, broken > 0 && items.length > 0 ? [...items, items[0]] : items))
    }
    case 'map':
      return fc.dictionary(keys, fillingOf(form.item, broken, depth + 1), { maxKeys: 2 })
    case 'record': {
      const fields = Object.entries(form.fields).map(([name, field]) => {
        const value = fillingOf(field.form, broken, depth + 1)
        const missing = fc.constant(undefined)
        const optional = fc.oneof({ weight: depth < 3 ? 4 : 1, arbitrary: value }, { weight: 2, arbitrary: missing })
        return [
          name,
          field.required ? (broken === 0 ? value : fc.oneof({ weight: 50, arbitrary: value }, { weight: 1, arbitrary: missing })) : optional,
        ] as const
      })
      return fc.record(Object.fromEntries(fields)).map((made) => Object.fromEntries(Object.entries(made).filter(([, value]) => value !== undefined)))
    }
  }
}

const fitting = (some: readonly string[], max: number) => fc.constantFrom(...some.filter((word) => word.length <= max))

const fittings = new Map<string, fc.Arbitrary<string>>()

/** Generates texts that match a pattern: known words that match, and texts generated from the pattern. */
function fittingText(pattern: RegExp, max: number): fc.Arbitrary<string> {
  const key = `${pattern.source} ${max}`
  let known = fittings.get(key)
  if (!known) {
    const fitting = [...words, ...oddWords].filter((word) => word.length <= max && pattern.test(word))
    const made = fc.stringMatching(pattern, { size: 'xsmall' }).map((text) => text.slice(0, max))
    known = fitting.length > 0 ? fc.oneof({ weight: 4, arbitrary: fc.constantFrom(...fitting) }, { weight: 1, arbitrary: made }) : made
    fittings.set(key, known)
  }
  return known
}

/** Fragments of Envoy's messages, as in EnvoyFilters. Some are invalid. */
const messages: fc.Arbitrary<unknown> = fc.constantFrom<unknown>(
  { name: 'x', connect_timeout: '5s' },
  { name: 'x', connect_timeout: '-5s' },
  { connect_timeout: 'NaN' },
  { name: '' },
  { no_such_field: 1 },
  { name: 'f', typed_config: { '@type': 'type.googleapis.com/envoy.extensions.filters.http.router.v3.Router' } },
  { name: 'f', typed_config: { '@type': 'type.googleapis.com/no.such.Type', a: 1 } },
  { name: 'f', typed_config: { '@type': 'type.googleapis.com/envoy.extensions.filters.http.rbac.v3.RBAC', rules: { policies: { p: {} } } } },
  { per_connection_buffer_limit_bytes: 4_294_967_296 },
  { per_connection_buffer_limit_bytes: 32_768 },
  { virtual_hosts: [{ name: 'v', domains: [] }] },
  { name: 'v', domains: ['v.com'], routes: [{ match: { prefix: '/' }, redirect: {} }] },
  { match: { prefix: '/' }, route: { cluster: 'x', timeout: '1s' } },
  { circuit_breakers: { thresholds: [{ max_connections: -1 }] } },
)

/** A document: its kind, its name, and its spec as a user could have written it. */
export interface MadeDocument {
  readonly kind: Kind
  readonly name: string
  readonly spec: unknown
}

/** Generates documents of a kind. About `broken` percent of the parts of a spec are invalid. */
export function documentsOf(kind: Kind, broken: number): fc.Arbitrary<MadeDocument> {
  return fc
    .record({ name: fc.constantFrom('a', 'b', 'g', 'constructor'), spec: fillingOf(kind.spec.form, broken) })
    .map(({ name, spec }) => ({ kind, name, spec, [fc.toStringMethod]: () => `${kind.name} ${name} ${fc.stringify(spec)}` }))
}

/** Returns a document without the parts that its shape rejects, as far as removing parts makes it valid. */
export function mended(document: MadeDocument): MadeDocument {
  const spec = structuredClone(document.spec)
  for (let round = 0; round < 12; round++) {
    const report: Report = { faults: [], warnings: [] }
    document.kind.spec.read(spec, '', report)
    if (report.faults.length === 0) break
    for (const { path } of report.faults) leaveOut(spec, path)
  }
  return { ...document, spec }
}

/** Removes the value at a path, or the deepest existing value above it. */
function leaveOut(spec: unknown, path: string): void {
  const steps = [...path.matchAll(/\[([^\]]*)\]|([^.[\]]+)/g)].map(([, key, name]) => key ?? name ?? '')
  const found: { within: Record<string, unknown>; step: string }[] = []
  let at: unknown = spec
  for (const step of steps) {
    if (typeof at !== 'object' || at === null || !Object.hasOwn(at, step)) break
    found.push({ within: at as Record<string, unknown>, step })
    at = (at as Record<string, unknown>)[step]
  }
  const last = found.at(-1)
  if (!last) return
  if (Array.isArray(last.within)) last.within.splice(Number(last.step), 1)
  else delete last.within[last.step]
}

/** Generates documents of all kinds. */
export function anyDocuments(broken: number): fc.Arbitrary<MadeDocument> {
  return fc.oneof(...[...kinds.values()].map((kind) => documentsOf(kind, broken)))
}

/** Generates values of a form that is not a document's. */
export const valuesOf = (form: Form, broken: number): fc.Arbitrary<unknown> => fillingOf(form, broken)

/** Formats a document as YAML, in a namespace. */
export function textOf({ kind, name, spec }: MadeDocument, namespace: string): string {
  return stringify(
    { apiVersion: `${kind.group}.mesh.io/${kind.versions.at(-1)}`, kind: kind.name, metadata: { name, namespace }, spec },
    { aliasDuplicateObjects: false, compat: 'yaml-1.1' },
  )
}
