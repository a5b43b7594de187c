import { mkdirSync, mkdtempSync, rmSync, truncateSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { expect } from 'chai'
import { pairReader, readPair, readRoots, readToken } from '../../actors/agent/credentials/credential-file.ts'
import { type MadeRoot, rootOf } from '../harness/authorities.ts'
import { rejected } from '../harness/rejected.ts'

describe('credential files', () => {
  let dir = ''
  let roots: readonly MadeRoot[] = []
  before(() => {
    dir = mkdtempSync(join(tmpdir(), 'mesh-credentials-'))
    roots = [rootOf('first'), rootOf('second')]
  })
  after(() => rmSync(dir, { recursive: true, force: true }))
  const path = (name: string) => join(dir, name)
  const write = (name: string, content: string) => {
    writeFileSync(path(name), content)
    return path(name)
  }
  const pem = (index: number) => roots[index]?.record.certificate as string
  const keyOf = (index: number) => roots[index]?.key.export({ type: 'pkcs8', format: 'pem' }) as string

  describe('with a token', () => {
    it('give the token without surrounding white space', async () => {
      expect(await readToken(write('token', ' a.b.c \n'))).to.equal('a.b.c')
    })

    it('are rejected with their name if they contain no token', async () => {
      const refused: [string, RegExp][] = [
        [write('two', 'a.b.c\nd.e.f'), /two: holds no token/],
        [write('empty', ''), /empty: holds no token/],
        [path('nowhere'), /nowhere: there is no such file/],
        [dir, /is not a file/],
      ]
      truncateSync(write('large', 'x'), 2_000_000)
      for (const [file, reason] of [...refused, [path('large'), /has more than 1048576 bytes/] as const])
        expect(await rejected(readToken(file))).to.match(reason)
    })
  })

  describe('with roots', () => {
    it('use the first file that exists, and learned roots', async () => {
      const [first, second] = [write('first.pem', pem(0)), write('second.pem', pem(1))]
      expect(await readRoots({ files: [path('nowhere'), first, second], isPinned: false, learned: undefined })).to.deep.equal([pem(0)])
      expect(await readRoots({ files: [first], isPinned: false, learned: second })).to.deep.equal([pem(0), pem(1)])
      expect(await readRoots({ files: [path('nowhere')], isPinned: false, learned: second })).to.deep.equal([pem(1)])
      expect(await readRoots({ files: [first], isPinned: false, learned: second }, 'known')).to.deep.equal([pem(0), 'known'])
      expect(await readRoots({ files: [first], isPinned: true, learned: undefined }, 'known')).to.deep.equal([pem(0)])
      expect(await readRoots({ files: undefined, isPinned: true, learned: undefined })).to.equal(undefined)
    })

    it('are ignored if they are malformed and others exist, and named if there are none', async () => {
      const garbled = write('garbled.pem', pem(0).slice(0, 80))
      expect(await readRoots({ files: [garbled], isPinned: false, learned: write('good.pem', pem(1)) })).to.deep.equal([pem(1)])
      expect(await rejected(readRoots({ files: [garbled], isPinned: false, learned: undefined }))).to.match(/garbled.pem: the CERTIFICATE has no end/)
      expect(await rejected(readRoots({ files: [path('a'), path('b')], isPinned: false, learned: undefined }))).to.match(
        /a and .*b: there is no such file/,
      )
    })

    it('use only the certificates of a file', async () => {
      const file = write('both.pem', `${keyOf(0)}${pem(0)}`)
      expect(await readRoots({ files: [file], isPinned: false, learned: undefined })).to.deep.equal([pem(0)])
    })
  })

  describe('with a certificate and its key', () => {
    it('are used if both exist and match', async () => {
      const chain = write('chain.pem', pem(0))
      const key = keyOf(0)
      expect(await readPair({ chain, key: write('key.pem', key) })).to.deep.equal({ chain: pem(0), key })
      expect(await readPair({ chain, key: path('nowhere') })).to.equal(undefined)
      expect(await readPair({ chain, key: write('empty.pem', '') })).to.equal(undefined)
      expect(await rejected(readPair({ chain, key: write('other.pem', keyOf(1)) }))).to.match(/other.pem: is not the key of/)
      expect(await rejected(readPair({ chain, key: write('garbled', 'key') }))).to.match(/garbled: holds no private key/)
      expect(await rejected(readPair({ chain: path('garbled'), key: path('key.pem') }))).to.match(/garbled: holds no certificate/)
    })

    it('are verified once for each content', async () => {
      const files = { chain: write('chain.pem', pem(0)), key: write('key.pem', keyOf(0)) }
      const read = pairReader(files)
      const first = await read()
      expect(await read()).to.equal(first)
      write('chain.pem', pem(1))
      expect(await rejected(read())).to.match(/is not the key of/)
      write('key.pem', keyOf(1))
      expect(await read()).to.deep.equal({ chain: pem(1), key: keyOf(1) })
    })

    it('must not be directories', async () => {
      mkdirSync(path('directory'))
      expect(await rejected(readPair({ chain: path('directory'), key: path('directory') }))).to.match(/is not a file/)
    })
  })
})
