/** The cluster of the tests itself: it is there, and goes with its owner. */
import { type ChildProcess, spawn, spawnSync } from 'node:child_process'
import { existsSync, readFileSync, rmSync } from 'node:fs'
import { expect } from 'chai'
import { Output } from '../harness/output.ts'
import { until } from '../harness/until.ts'

describe('a cluster of a test', () => {
  let owner: ChildProcess | undefined
  after(() => owner?.kill('SIGKILL'))

  it('has a real API server and nodes, and leaves no process, namespace or mount behind when its owner is killed', async () => {
    const harness = new URL('../harness/cluster.ts', import.meta.url)
    const code = `import { TestCluster } from '${harness}'
      const cluster = await TestCluster.start('n1=r1/z1')
      console.log('at', cluster.dir, cluster.kubectl(['get', 'nodes', '-o', 'name']).trim(), cluster.server)
      setInterval(() => undefined, 1000)`
    owner = spawn(process.execPath, ['--input-type=module', '--eval', code])
    const output = new Output()
    output.follow(owner)
    const [, dir = '', node, port = ''] = await output.says(/^at (\S+) (\S+) https:\S+:(\d+)$/m)
    expect(node).to.equal('node/n1')
    const namespace = `kc-mesh${Number(port) - 16_443}`
    const namespaces = () => spawnSync('ip', ['netns', 'list'], { encoding: 'utf8' }).stdout
    expect([namespaces().includes(namespace), existsSync(`${dir}/cluster.json`)]).to.deep.equal([true, true])
    owner.kill('SIGKILL')
    await until('the end of the cluster', () => !existsSync(`${dir}/cluster.json`) && !namespaces().includes(namespace))
    expect(readFileSync('/proc/self/mounts', 'utf8')).not.to.contain(dir)
    expect(spawnSync('pgrep', ['-f', dir], { encoding: 'utf8' }).stdout).to.equal('')
    rmSync(dir, { recursive: true })
  })
})
