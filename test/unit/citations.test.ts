/** Documents in `docs/` and numbered rules that comments cite must exist in the repository. */
import { existsSync, readdirSync, readFileSync } from 'node:fs'
import { join } from 'node:path'
import { fileURLToPath } from 'node:url'
import { expect } from 'chai'

const root = fileURLToPath(new URL('../..', import.meta.url))
const rooms = ['src', 'actors', 'bin', 'bench', 'protocols', 'test']
const rule = /[A-Z]\d+/g
const rules = String.raw`[A-Z]\d+(?:(?:, | to | and )[A-Z]\d+)*`

/** The comments of all sources; each line break within a comment is replaced by a space. */
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

/** Returns the numbers of the rules that a document states: the first cell of a row, or bold at the beginning of an item. */
function statedIn(document: string): ReadonlySet<string> {
  const content = readFileSync(join(root, 'docs', document), 'utf8')
  return new Set([...content.matchAll(/^(?:\| |- \*\*)([A-Z]\d+)(?:\*\*| )/gm)].map(([, number]) => number as string))
}

describe('citations in comments', () => {
  it('name documents and rules that exist', () => {
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

  it('refer to no text outside of the repository', () => {
    const elsewhere = /behaviour \d|behaviour sheet|overview \d|specification: |pilot-discovery \d/
    expect([...comments()].filter(({ text }) => elsewhere.test(text)).map(({ file }) => file)).to.deep.equal([])
  })

  it('are unambiguous: each document states a rule number once', () => {
    for (const document of readdirSync(join(root, 'docs'))) {
      const content = readFileSync(join(root, 'docs', document), 'utf8')
      const numbers = [...content.matchAll(/^(?:\| |- \*\*)([A-Z]\d+)(?:\*\*| )/gm)].map(([, number]) => number)
      expect(numbers, document).to.deep.equal([...new Set(numbers)])
    }
  })
})

describe('ARCHITECTURE.md', () => {
  const text = readFileSync(join(root, 'ARCHITECTURE.md'), 'utf8')

  it('is short enough to be read in a quarter of an hour', () => {
    expect(Buffer.byteLength(text)).to.be.at.most(25_000)
  })

  it('names files, folders and documents that exist', () => {
    const named = [...text.matchAll(/`((?:src|actors|protocols|bin|docs|test)\/[\w./-]+)[`,]/g), ...text.matchAll(/\]\(([\w./-]+)(?:#[\w-]+)?\)/g)]
    const missing = named.map(([, path = '']) => path).filter((path) => !existsSync(join(root, path)))
    expect(named.length).to.be.above(50)
    expect(missing).to.deep.equal([])
  })
})
