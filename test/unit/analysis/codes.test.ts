import { readFileSync } from 'node:fs'
import { expect } from 'chai'
import { Analysis } from '../../../src/analysis/analysis.ts'
import { codes } from '../../../src/analysis/finding.ts'
import { OfflineMesh } from '../../../src/analysis/offline-mesh.ts'
import { patchFaults } from '../../../src/xds/envoy-filter/patch-check.ts'
import { examples, mesh, patch, route, toWeb } from '../../harness/faulty-objects.ts'
import { testSettings } from '../../harness/settings.ts'

/** The findings of documents, `<code> <object> <path>`. */
function found(documents: readonly string[]): string[] {
  const offline = new OfflineMesh(testSettings(), patchFaults)
  offline.add('all.yaml', documents.join('\n---\n'))
  expect(offline.faults).to.deep.equal([])
  const analysis = new Analysis(offline.facts())
  analysis.refresh()
  return analysis.all().map(({ code, object, path }) => `${code} ${object} ${path}`)
}

/** Codes that are tested elsewhere: by `analyze.test.ts`, and by the command. */
const elsewhere = ['0001', '0106', '0109', '0110', '0111', '0112', '0127', '0128', '0129', '0130', '0131', '0132', '0133', '0134'].map(
  (code) => `IST${code}`,
)

describe('the codes of analysis', () => {
  for (const [code, given] of Object.entries(examples))
    for (const [index, example] of given.entries())
      it(`${code} is told of what is wrong, and not of what is right (${index + 1})`, () => {
        expect(found(example.wrong)).to.include(example.at)
        expect(found(example.right).filter((line) => line.startsWith(code))).to.deep.equal([])
      })

  it('have an example each', () => {
    expect([...Object.keys(examples), ...elsewhere, 'MESH0001', 'MESH0005', 'MESH0006', 'MESH0007'].sort()).to.deep.equal(Object.keys(codes).sort())
  })

  it('are not told of an object whose annotation says so', () => {
    const suppressed = (value: string) =>
      found([
        mesh('VirtualService', 'shop/v', `{hosts: [a.example], http: [{${toWeb}}]}`, `, annotations: {galley.istio.io/analyze-suppress: "${value}"}`),
      ])
    expect(suppressed('IST0001')).to.deep.equal(['IST0101 VirtualService/shop/v spec.http[0].route[0].destination.host'])
    expect(suppressed('IST0001, IST0101')).to.deep.equal([])
    expect(suppressed('*')).to.deep.equal([])
  })

  it('are checked where they are suppressed: what is no code is told', () => {
    const suppressing = (value: string) =>
      found([mesh('Sidecar', 'shop/s', '{egress: [{hosts: ["./*"]}]}', `, annotations: {galley.istio.io/analyze-suppress: "${value}"}`)])
    for (const value of ['*', 'IST0118, MESH0004', 'IST0101,', 'IST0199']) expect(suppressing(value)).to.deep.equal([])
    for (const value of ['IST118', 'IST0101, MESH0099', 'ist0101', 'toString'])
      expect(suppressing(value)).to.deep.equal(['IST0125 Sidecar/shop/s metadata.annotations[galley.mesh.io/analyze-suppress]'])
  })

  it('are told of the settings of the proxy in an annotation, as of those of the mesh', () => {
    const annotated = (text: string) =>
      found([
        `apiVersion: apps/v1\nkind: Deployment\nmetadata: {name: web, namespace: shop}\nspec: {template: {metadata: {annotations: {proxy.istio.io/config: "${text}"}}, spec: {containers: []}}}`,
      ])
    const at = 'Deployment/shop/web spec.template.metadata.annotations[proxy.istio.io/config]'
    expect(annotated('concurrency: 3')).to.deep.equal([])
    expect(annotated('conccurrency: 3')).to.deep.equal([`IST0133 ${at}`])
    expect(annotated('statNameLength: 3')).to.deep.equal([`IST0133 ${at}`])
    expect(annotated('concurrency: x')).to.deep.equal([`IST0125 ${at}`])
    expect(annotated('concurrency: [')).to.deep.equal([`IST0125 ${at}`])
  })

  it('stand in the documentation with level, meaning and what to do', () => {
    const page = readFileSync(new URL('../../../docs/analysis.md', import.meta.url), 'utf8')
    const rows = page.split('\n').filter((line) => /^\| (IST|MESH)\d{4}/.test(line))
    expect(rows).to.deep.equal(
      Object.entries(codes).map(([code, { name, level, meaning, advice }]) => `| ${code} ${name} | ${level} | ${meaning} | ${advice} |`),
    )
  })

  it('are told of an object that cannot be analyzed, and the others are analyzed', () => {
    const offline = new OfflineMesh(testSettings(), () => {
      throw new Error('unexpected')
    })
    offline.add('all.yaml', [patch('envoy.a.B'), route(`{${toWeb}}`)].join('\n---\n'))
    const analysis = new Analysis(offline.facts())
    analysis.refresh()
    expect(analysis.all().map(({ code, object }) => `${code} ${object}`)).to.deep.equal([
      'IST0001 EnvoyFilter/shop/f',
      'IST0101 VirtualService/shop/v',
    ])
  })
})
