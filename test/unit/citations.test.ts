/** What comments cite stands in the repository: documents of `docs/`, and the numbered rules in them. */
import { readdirSync, readFileSync } from 'node:fs'
import { join } from 'node:path'
import { fileURLToPath } from 'node:url'
import { expect } from 'chai'

const root = fileURLToPath(new URL('../..', import.meta.url))
const rooms = ['src', 'actors', 'bin', 'bench', 'protocols', 'test']
const rule = /[A-Z]\d+/g
const rules = String.raw`[A-Z]\d+(?:(?:, | to | and )[A-Z]\d+)*`

/** The comments of all sources, each line break in one of them being a space. */
function* comments(): Iterable<{ file: string; text: string }> {
  for (const room of rooms)
    for (const path of readdirSync(join(root, room), { recursive: true, encoding: 'utf8' })) {
      const file = join(room, path)
      if (!/\.(ts|js|cjs|proto)$/.test(file) || /(^|\/)(gen|node_modules)\//.test(file) || file.endsWith('citations.test.ts')) continue
      const content = readFileSync(join(root, file), 'utf8')
      for (const [comment] of content.matchAll(/\/\*[\s\S]*?\*\/|(?:^\s*\/\/.*\n)+/gm))
        yield { file, text: comment.replaceAll(/\s*\n\s*(?:\*|\/\/) ?/g, ' ') }
    }
}

/** Numbers of the rules that a document states: first cell of a row, or in bold at the beginning of an item. */
function statedIn(document: string): ReadonlySet<string> {
  const content = readFileSync(join(root, 'docs', document), 'utf8')
  return new Set([...content.matchAll(/^(?:\| |- \*\*)([A-Z]\d+)(?:\*\*| )/gm)].map(([, number]) => number as string))
}

describe('citations', () => {
  it('name documents and rules that are there', () => {
    const missing: string[] = []
    const stated = new Map(readdirSync(join(root, 'docs')).map((name) => [name, statedIn(name)]))
    let found = 0
    for (const { file, text } of comments()) {
      for (const [, document = '', after] of text.matchAll(new RegExp(String.raw`docs/([\w.-]+\.md)(?:, (${rules}))?`, 'g'))) {
        const before = new RegExp(`(${rules}) of docs/${document}`).exec(text)?.[1]
        if (!stated.has(document)) missing.push(`${file}: docs/${document}`)
        for (const [number] of `${before ?? ''} ${after ?? ''}`.matchAll(rule)) {
          found++
          if (!stated.get(document)?.has(number)) missing.push(`${file}: docs/${document}, ${number}`)
        }
      }
    }
    expect(missing).to.deep.equal([])
    expect(found).to.be.greaterThan(50)
  })

  it('name no text that is elsewhere', () => {
    const elsewhere = /behaviour \d|behaviour sheet|overview \d|specification: |pilot-discovery \d/
    expect([...comments()].filter(({ text }) => elsewhere.test(text)).map(({ file }) => file)).to.deep.equal([])
  })

  it('find every rule once', () => {
    for (const document of readdirSync(join(root, 'docs'))) {
      const content = readFileSync(join(root, 'docs', document), 'utf8')
      const numbers = [...content.matchAll(/^(?:\| |- \*\*)([A-Z]\d+)(?:\*\*| )/gm)].map(([, number]) => number)
      expect(numbers, document).to.deep.equal([...new Set(numbers)])
    }
  })
})
