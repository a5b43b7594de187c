/** The Dockerfile: what its images have and who they run as. That pods run from these files: test/orchestrator/install.test.ts. */
import { existsSync, readFileSync } from 'node:fs'
import { fileURLToPath } from 'node:url'
import { expect } from 'chai'
import { dockerStages, ownStages } from '../harness/docker-images.ts'

const root = new URL('../../', import.meta.url)

describe('the Dockerfile', () => {
  it('makes images of few layers, which run as a user without rights', () => {
    for (const target of ['discovery', 'agent']) {
      const { user, layers, workingDir, entry } = ownStages().get(target) ?? {}
      expect([user, workingDir, entry?.length], target).to.deep.equal(['1337:1337', '/', 1])
      expect(layers, target).to.be.lessThan(10)
    }
  })

  it('copies what the build of the package makes, and nothing that .dockerignore leaves out', () => {
    const ignored = readFileSync(new URL('.dockerignore', root), 'utf8').trim().split('\n')
    expect(ignored[0]).to.equal('*')
    const kept = ignored.slice(1).map((line) => line.replace(/^!/, ''))
    const { files: packed } = JSON.parse(readFileSync(new URL('package.json', root), 'utf8')) as { files: string[] }
    for (const [target, { files }] of ownStages())
      for (const source of Object.values(files)) {
        expect(
          kept.some((path) => source === path || source.startsWith(`${path}/`)),
          `${target}: ${source}`,
        ).to.equal(true)
        const isKnown = source.startsWith('node_modules/')
          ? existsSync(fileURLToPath(new URL(source, root)))
          : [...packed, 'package.json'].includes(source)
        expect(isKnown, `${target}: ${source}`).to.equal(true)
      }
  })

  it('is read as its builder reads it: stages have what their base has', () => {
    const text =
      'FROM a AS one\nENV A=b\nCOPY x /x\n# a comment\nFROM one AS two\nCOPY --from=a /y /z\nRUN true\nUSER 5:6\nENTRYPOINT ["e", "f"]\nCMD ["g"]\n'
    expect(dockerStages(text).get('two')).to.deep.equal({
      ...{ files: { '/x': 'x' }, fromImages: { '/z': 'a /y' }, env: { A: 'b' }, user: '5:6', workingDir: '' },
      ...{ entry: ['e', 'f'], args: ['g'], layers: 3 },
    })
    expect(() => dockerStages('FROM a AS one\nADD http://x /x\n')).to.throw('the instruction ADD')
  })
})
