/** The bound of slow functions of templates in the command `inject` (docs/injection.md, N17). */
import { mkdtempSync, rmSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { expect } from 'chai'
import { stringify } from 'yaml'
import { podWith } from '../harness/injection.ts'
import { runCommand } from '../harness/service.ts'

describe('the command inject with templates that are slow', () => {
  const dir = mkdtempSync(join(tmpdir(), 'mesh-inject-command-'))
  after(() => rmSync(dir, { recursive: true }))

  /** Injects a pod with a template that makes so many keys, each of which counts as 5 ms. */
  const inject = (keys: number) => {
    const [config, pod] = [join(dir, `config-${keys}`), join(dir, 'pod.yaml')]
    const sidecar = `{{ range until ${keys} }}{{ $x := genPrivateKey "ed25519" }}{{ end }}metadata: {labels: {made: "keys"}}`
    writeFileSync(config, stringify({ templates: { sidecar } }))
    writeFileSync(pod, stringify(podWith()))
    return runCommand(['inject', '-f', pod, '--injectConfig', config])
  }

  it('gives a pod 60,000 ms', async () => {
    const { code, stdout } = await inject(12_000)
    expect([code, stdout.includes('made: keys')]).to.deep.equal([0, true])
  })

  it('refuses more, with the template and its line', async () => {
    const { code, stdout, stderr } = await inject(12_001)
    expect([code, stdout]).to.deep.equal([255, ''])
    expect(stderr).to.match(/document 1 \(Pod default\/web\): template sidecar: line 1: .*slow functions .* take more than 60000 ms/)
  })
})
