import { readFileSync } from 'node:fs'
import { expect } from 'chai'
import { mayDiffer } from '../../../src/config/orchestrator-yaml.ts'
import { readDocuments } from '../../../src/config/yaml-documents.ts'

/** Scalars, and what the orchestrator's own library (Go's `sigs.k8s.io/yaml` 1.6.0) reads: `[text, value]`. */
const read: [text: string, value: unknown][] = JSON.parse(readFileSync(new URL('orchestrator-yaml.json', import.meta.url), 'utf8'))

describe('YAML as the orchestrator reads it', () => {
  for (const form of [(text: string) => `a: ${text}\n`, (text: string) => `{a: ${text}}`, (text: string) => `a:\n- {b: 1}\n- c: ${text} # comment\n`])
    it(`has the flags and numbers of its library: ${JSON.stringify(form('X'))}`, () => {
      for (const [text, value] of read) {
        if (text.includes(',') && form('X').startsWith('{')) continue
        const [document] = readDocuments(form(text), 'orchestrator')
        const found = JSON.stringify(document && 'value' in document ? document.value : document)
        expect(found, text).to.equal(JSON.stringify(form('X').includes('c:') ? { a: [{ b: 1 }, { c: value }] } : { a: value }))
      }
    })

  it('is read slower only where it may differ from YAML 1.2', () => {
    const differs = (text: string) => {
      const [core, orchestrator] = (['core', 'orchestrator'] as const).map((dialect) => JSON.stringify(readDocuments(`a: ${text}\n`, dialect)))
      return core !== orchestrator
    }
    for (const [text] of read) if (differs(text)) expect(mayDiffer(`a: ${text}\n`), text).to.equal(true)
    expect(mayDiffer('a: yesterday\nb: [10.0.0.1, none, "x"]\nport: 8080\n')).to.equal(false)
  })
})
