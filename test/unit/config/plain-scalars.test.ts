import { readFileSync } from 'node:fs'
import { expect } from 'chai'
import { readDocuments } from '../../../src/config/yaml-documents.ts'

/** Scalars, and what the orchestrator's own library (Go's `sigs.k8s.io/yaml` 1.6.0) reads: `[text, value]`. */
const read: [text: string, value: unknown][] = JSON.parse(readFileSync(new URL('plain-scalars.json', import.meta.url), 'utf8'))

describe('YAML as the orchestrator reads it', () => {
  for (const form of [(text: string) => `a: ${text}\n`, (text: string) => `{a: ${text}}`, (text: string) => `a:\n- {b: 1}\n- c: ${text} # comment\n`])
    it(`has the flags and numbers of its library: ${JSON.stringify(form('X'))}`, () => {
      for (const [text, value] of read) {
        if (text.includes(',') && form('X').startsWith('{')) continue
        const [document] = readDocuments(form(text))
        const found = JSON.stringify(document && 'value' in document ? document.value : document)
        expect(found, text).to.equal(JSON.stringify(form('X').includes('c:') ? { a: [{ b: 1 }, { c: value }] } : { a: value }))
      }
    })
})
