/** Commands in documents are those that there are, with the flags that they have. */
import { readdirSync, readFileSync } from 'node:fs'
import { join } from 'node:path'
import { fileURLToPath } from 'node:url'
import { expect } from 'chai'

const root = fileURLToPath(new URL('../..', import.meta.url))
const documentsIn = (folder: string) =>
  readdirSync(join(root, folder), { recursive: true, encoding: 'utf8' })
    .filter((path) => path.endsWith('.md'))
    .map((path) => join(folder, path))

/** The flags of each command by its words, `pilot-discovery push watch`; those of every command of a binary by the name of it. From docs/reference.md. */
function knownFlags(): ReadonlyMap<string, ReadonlySet<string>> {
  const [, ...sections] = readFileSync(join(root, 'docs/reference.md'), 'utf8').split(/^##+ /m)
  return new Map(
    sections.flatMap((section) => {
      const [, name] = /^(?:Every command of `(?=pilot-\w+`)|`(?=pilot-\w+ ))(pilot-[^`]+)`/.exec(section) ?? []
      return name === undefined ? [] : [[name, new Set([...section.matchAll(/^\| `--(\S+?)`/gm)].map(([, flag]) => flag as string))] as const]
    }),
  )
}

/** Commands without flags of their own, and of the plugins. */
const others = ['pilot-agent request', 'pilot-discovery autocomplete', 'pilot-agent autocomplete', 'pilot-discovery help', 'pilot-agent help']
const everywhere = ['help', 'json']

describe('commands in documents', () => {
  const flags = knownFlags()
  const topics = new Set([...flags.keys()].filter((name) => name.split(' ').length === 3).map((name) => name.split(' ').slice(0, 2).join(' ')))

  /** Returns what is wrong with a command line that a document has; undefined: nothing. */
  function faultOf(line: string): string | undefined {
    const words = line.replaceAll(/<[^>]*>/g, 'x').split(/\s+/)
    const named = [words.slice(0, 3), words.slice(0, 2)].map((some) => some.join(' ')).find((name) => flags.has(name) || others.includes(name))
    if (named === undefined)
      return topics.has(words.slice(0, 2).join(' ')) && (words[2] ?? '--').startsWith('--') ? undefined : `no such command: ${line}`
    const known = [...(flags.get(named) ?? []), ...(flags.get(words[0] as string) ?? []), ...everywhere]
    const unknown = [...line.replace(/ -- .*/, '').matchAll(/(?<=\s)--([\w-]+)/g)]
      .map(([, flag]) => flag as string)
      .find((flag) => !known.includes(flag))
    return unknown === undefined ? undefined : `no flag --${unknown}: ${line}`
  }

  for (const path of ['README.md', 'CONTRIBUTING.md', 'SECURITY.md', ...documentsIn('docs'), ...documentsIn('examples')])
    it(`are right in ${path}`, () => {
      const text = readFileSync(join(root, path), 'utf8').replaceAll('\\\n', ' ')
      const lines = [
        ...text.matchAll(
          /(?:`|^\s*(?:\$ )?(?:\(?cd \S+ && )?(?:[A-Z_]+=\S+ )*(?:npx )?)(pilot-(?:discovery|agent) [a-z](?:<[^>\n]*>|[^`\n|#>;&)])*)/gm,
        ),
      ].map(([, line]) => (line as string).trim())
      expect(lines.map(faultOf).filter((fault) => fault !== undefined)).to.deep.equal([])
    })
})
