/** The schemas for editors, by a validator that is not ours. */
import { globSync, readdirSync, readFileSync } from 'node:fs'
import { dirname, join } from 'node:path'
import { fileURLToPath } from 'node:url'
import { Ajv } from 'ajv'
import { expect } from 'chai'
import { parseAllDocuments } from 'yaml'
import { kinds } from '../../../src/config/kinds.ts'
import { wholeSpecs } from '../../harness/whole-documents.ts'

const root = fileURLToPath(new URL('../../..', import.meta.url))
const folder = join(root, 'schemas')

const ajv = new Ajv({ strict: false, allErrors: true })
for (const name of readdirSync(folder)) ajv.addSchema(JSON.parse(readFileSync(join(folder, name), 'utf8')), name)

/** What a schema finds wrong with a value. */
function faultsOf(value: unknown, schema = 'mesh.json'): string[] {
  const validate = ajv.getSchema(schema)
  if (!validate) throw new Error(`there is no ${schema}`)
  validate(value)
  return (validate.errors ?? []).map(({ instancePath, message, params }) => `${instancePath} ${message} ${JSON.stringify(params)}`)
}

const documentsOf = (text: string): unknown[] => parseAllDocuments(text).map((document) => document.toJS() as unknown)
const object = (kind: string, spec: unknown, apiVersion = 'networking.mesh.io/v1') => ({ apiVersion, kind, metadata: { name: 'a' }, spec })

describe('the schemas for editors', () => {
  const examples = globSync('examples/**/*.{yaml,yml}', { cwd: root })

  it('are those of all kinds, in the dialect that editors read', () => {
    expect(readdirSync(folder).sort()).to.deep.equal(['mesh.json', ...[...kinds.keys()].map((kind) => `${kind}.json`)].sort())
    for (const name of readdirSync(folder)) expect(ajv.validateSchema(JSON.parse(readFileSync(join(folder, name), 'utf8'))), name).to.equal(true)
  })

  it('accept every document of the examples, in both spellings of its group', () => {
    let judged = 0
    for (const path of examples) {
      const text = readFileSync(join(root, path), 'utf8')
      for (const document of documentsOf(`${text}\n---\n${text.replaceAll('.mesh.io/v', '.istio.io/v')}`)) {
        if (document === null) continue
        if (/\.(mesh|istio)\.io\//.test((document as { apiVersion?: string }).apiVersion ?? '')) judged++
        expect(faultsOf(document), path).to.deep.equal([])
      }
    }
    expect(judged).to.be.greaterThan(40)
  })

  it('accept documents with all fields', () => {
    for (const { kind, spec } of wholeSpecs()) {
      const { group = '', versions = [] } = [...kinds.values()].find(({ name }) => name === kind) ?? {}
      const document = object(kind, spec, `${group}.mesh.io/${versions.at(-1)}`)
      expect([kind, ...faultsOf(document), ...faultsOf(document, `${kind}.json`)]).to.deep.equal([kind])
    }
  })

  it('show misspelt fields, kinds and versions, wrong types, missing fields and values out of range', () => {
    const server = { port: { number: 80, name: 'http', protocol: 'HTTP' }, hosts: ['*'] }
    expect(faultsOf(object('Gateway', { servers: [server] }))).to.deep.equal([])
    const wrong: readonly (readonly [document: unknown, place: string])[] = [
      [object('Gateway', { servers: [{ ...server, host: ['*'] }] }), '/spec/servers/0'],
      [object('Gateway', { servers: [{ ...server, port: { ...server.port, number: 80_000 } }] }), '/spec/servers/0/port/number'],
      [object('Gateway', { servers: [{ ...server, hosts: '*' }] }), '/spec/servers/0/hosts'],
      [object('Gateway', {}), '/spec'],
      [{ ...object('Gateway', {}), spec: undefined }, ''],
      [object('Gateways', { servers: [server] }), '/kind'],
      [object('Gateway', { servers: [server] }, 'networking.mesh.io/v2'), '/apiVersion'],
      [object('AuthorizationPolicy', { actions: 'DENY' }, 'security.mesh.io/v1'), '/spec'],
    ]
    for (const [document, place] of wrong) {
      const faults = faultsOf(JSON.parse(JSON.stringify(document)))
      expect(
        faults.map((fault) => fault.split(' ')[0]),
        JSON.stringify(document),
      ).to.include(place)
    }
    expect(faultsOf({ apiVersion: 'v1', kind: 'Secret', data: {} })).to.deep.equal([])
  })

  it('are where the lines of examples say', () => {
    const lines = examples.flatMap((path) => {
      const [, named] = /^# yaml-language-server: \$schema=(\S+)$/m.exec(readFileSync(join(root, path), 'utf8')) ?? []
      return named === undefined ? [] : [join(dirname(path), named)]
    })
    expect(lines.length).to.be.greaterThan(2)
    expect([...new Set(lines)]).to.deep.equal(['schemas/mesh.json'])
  })
})
