/** Every task of docs/guide.md is run by a test: those of the page by `test/envoy/guide.test.ts`, those that it links by the tests below. */
import { existsSync, readFileSync } from 'node:fs'
import { fileURLToPath } from 'node:url'
import { expect } from 'chai'

const root = new URL('../../', import.meta.url)
const read = (path: string) => readFileSync(new URL(path, root), 'utf8')
const page = read('docs/guide.md')
const guide = 'test/envoy/guide.test.ts'

/** What runs the tasks on other pages, by the link of the table. */
const tests: Readonly<Record<string, readonly string[]>> = {
  'first-steps.md#identity-and-certificates': ['test/system/first-steps.test.ts'],
  'install.md#ask-it': ['test/orchestrator/install.test.ts'],
  'commands.md#the-mesh-of-a-cluster': ['test/orchestrator/cluster-commands.test.ts'],
  'install.md#upgrade-in-place': ['test/orchestrator/install.test.ts'],
  'operation.md#several-replicas-who-serves-which-proxy': ['test/orchestrator/replicas.test.ts', 'test/orchestrator/proxy-spread.test.ts'],
  'fleet.md': ['test/unit/bench/fleet.test.ts', 'test/chart/charts.test.ts'],
  'operation.md#several-clusters': ['test/orchestrator/remote-clusters.test.ts'],
  'networks.md': ['test/orchestrator/two-clusters.test.ts'],
  'registration.md': ['test/orchestrator/registration.test.ts'],
  'running.md': ['test/monitoring/rules.test.ts', 'test/monitoring/units.test.ts'],
}

/** The anchor of a heading. */
const anchorOf = (heading: string) =>
  heading
    .toLowerCase()
    .replace(/[^\w\- ]/g, '')
    .replaceAll(' ', '-')
const anchorsOf = (text: string) => [...text.matchAll(/^#+ (.*)$/gm)].map(([, heading = '']) => anchorOf(heading))

const rows = [...page.matchAll(/^\| (?!To |---)([^|]*) \| (.*) \|$/gm)].map(([, task = '', how = '']) => ({
  task,
  links: [...how.matchAll(/\]\(([^)]*)\)/g)].map(([, link = '']) => link),
}))
const links = rows.flatMap((row) => row.links)

describe('the tasks of docs/guide.md', () => {
  it('lead to headings that are there, and none of the page is left out', () => {
    expect(rows.length).to.be.greaterThan(10)
    expect(rows.filter((row) => row.links.length === 0)).to.deep.equal([])
    for (const link of links) {
      const [file = '', anchor] = link.split('#')
      const text = file === '' ? page : read(`docs/${file}`)
      if (anchor !== undefined) expect(anchorsOf(text), link).to.include(anchor)
    }
    const below = [...page.matchAll(/^## (.*)$/gm)].map(([, heading = '']) => `#${anchorOf(heading)}`)
    expect(links.filter((link) => link.startsWith('#'))).to.have.members(below)
  })

  it('of the page have commands, which its test runs', () => {
    const sections = page.split(/^## /m).slice(1)
    expect(sections.filter((section) => !/^```console\n\$ /m.test(section)).map((section) => section.split('\n')[0])).to.deep.equal([])
    expect(read(guide)).to.contain('docs/guide.md')
  })

  it('on other pages have tests each, which name the page or its rules', () => {
    expect(links.filter((link) => !link.startsWith('#'))).to.have.members(Object.keys(tests))
    for (const [link, files] of Object.entries(tests))
      for (const file of files) {
        expect(existsSync(fileURLToPath(new URL(file, root))), file).to.equal(true)
        const [name = ''] = link.split('#')
        expect(read(file), `${file} of ${link}`).to.satisfy((text: string) => text.includes(name) || text.includes(`docs/${name}`))
      }
  })
})
