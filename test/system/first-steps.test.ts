/** What docs/first-steps.md says of configuration from files and of certificates, with the documents and outputs of its text. */
import { readFileSync } from 'node:fs'
import { join } from 'node:path'
import { expect } from 'chai'
import { freePort } from '../../bench/ports.ts'
import { runCommand, Service } from '../harness/service.ts'
import { ServingCertificates } from '../harness/serving-certificates.ts'
import { until } from '../harness/until.ts'
import { sidecarNode, XdsClient } from '../harness/xds-client.ts'

const page = readFileSync(new URL('../../docs/first-steps.md', import.meta.url), 'utf8')

/** The content of a file that a command of the page writes. */
function documentOf(file: string): string {
  const [, text] = page.split(`cat > config/${file}`)[1]?.match(/<<'?YAML'?\n([\s\S]*?)\nYAML\n/) ?? []
  if (text === undefined) throw new Error(`the page writes no ${file}`)
  return text
}

/** What the page prints after a command. */
function outputOf(command: string): string {
  return page.split(`$ npx pilot-discovery ${command}\n`)[1]?.match(/^([\s\S]*?)(?=^\$ |^```)/m)?.[1] ?? ''
}

describe('the commands of the first steps', function () {
  // Each command takes seconds on a busy machine.
  this.timeout(400_000)
  let service: Service

  before(async () => {
    service = new Service({
      env: { PILOT_MOCK_SERVICES: '10' },
      flags: ['--secureGRPCAddr', `127.0.0.1:${await freePort()}`, '--ctrlz_port', String(await freePort())],
    })
    await service.start()
  })
  after(() => service.dispose())

  it('print what it says, and the service prints no warning', async () => {
    service.write('reviews.yaml', documentOf('reviews.yaml'))
    await until('the service', async () => /^pilot_services 11$/m.test(await service.metrics()))
    const made = new ServingCertificates(service.authorityDir)
    made.authority('site')
    const encoded = (name: string) => Buffer.from(made.text(name)).toString('base64')
    const site = documentOf('site.yaml')
      .replace('$(base64 -w0 site.crt)', encoded('site.pem'))
      .replace('$(base64 -w0 site.key)', encoded('site-key.pem'))
    service.write('site.yaml', site)
    await until('the Secret', async () => JSON.stringify(await service.debug('configz?namespace=edge')).includes('"certificate"'))
    const gateway = { id: 'router~10.0.0.5~gw-1.edge~edge.svc.cluster.local', metadata: { LABELS: { app: 'gateway' } } }
    const clients = [gateway, sidecarNode('10.0.0.1', 'reviews', 'shop')].map((node) => new XdsClient(service.grpcPort, node, true).connect())
    for (const client of clients) await client.ready()
    for (const client of clients) client.close()
    await until('them to be gone', async () => (await service.debug<object[]>('syncz')).length === 0)
    const token = join(service.authorityDir, 'reviews.token')
    const written = await runCommand(['token', '--namespace', 'shop', '--service-account', 'reviews', '--ttl', '1h', '-o', token], service.env)
    expect(written.code, written.stderr).to.equal(0)
    for (const command of ['ca rotate --dry-run', 'ca rotate']) {
      const { stdout, stderr } = await runCommand(command.split(' '), service.env)
      expect([stdout, stderr]).to.deep.equal([outputOf(command), ''])
    }
    await service.stop()
    await service.output.whole()
    service.output.lacks(/\t(warn|error|fatal)\t.*/)
  })
})
