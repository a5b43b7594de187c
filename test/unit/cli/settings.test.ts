/** What `pilot-discovery config` prints. */
import { expect } from 'chai'
import { discoveryVariables } from '../../../src/config/features.ts'
import { runCommand, Service } from '../../harness/service.ts'

interface Answer {
  readonly settings: readonly { name: string; value: string | null; default: string; origin: string; problem: string }[]
  readonly misspelt: readonly unknown[]
}

describe('pilot-discovery config', () => {
  it('shows each flag and variable with value, default and origin, and no secret', async () => {
    const key = 'a-key-that-nobody-may-see'
    const environment = { PILOT_MOCK_SERVICES: '3', JWT_RULE: key, POD_NAMESPACE: 'own', PILOT_MOCK_SERVICE: key }
    const { stdout, code } = await runCommand(['config', '--json', '--registries', 'Mock'], environment)
    const { settings, misspelt } = JSON.parse(stdout) as Answer
    const of = (wanted: string) => settings.find(({ name }) => name === wanted)
    expect(of('--registries')).to.include({ value: 'Mock', default: 'Orchestrator', origin: 'flag' })
    expect(of('--grpcAddr')).to.include({ value: ':15010', origin: 'default' })
    expect(of('--resync')).to.include({ value: '1m0s', origin: 'default' })
    expect(of('--namespace')).to.include({ value: 'own', origin: 'environment' })
    expect(of('PILOT_MOCK_SERVICES')).to.include({ value: '3', origin: 'environment' })
    expect(of('JWT_RULE')).to.include({ value: null, origin: 'environment' })
    expect(settings.map(({ name }) => name)).to.include.members(Object.keys(discoveryVariables))
    expect(misspelt).to.deep.include({ name: 'PILOT_MOCK_SERVICE', nearest: 'PILOT_MOCK_SERVICES' })
    expect(stdout).not.to.include(key)
    expect(code).to.equal(0)
  })

  it('shows those of a server that runs, with its own flags and environment', async () => {
    const service = new Service({
      flags: ['--writers', '1'],
      env: { PILOT_MOCK_SERVICES: '3', JWT_RULE: JSON.stringify({ issuer: 'https://a.example', jwks_uri: 'https://a.example/keys' }) },
    })
    try {
      await service.start()
      const socket = { MESHD_ADMIN_SOCKET: String(service.env.MESHD_ADMIN_SOCKET) }
      const { stdout, code } = await runCommand(['config', '--running', '--changed', '--json'], socket)
      const { settings } = JSON.parse(stdout) as Answer
      const of = (wanted: string) => settings.find(({ name }) => name === wanted)
      expect(of('--writers')).to.include({ value: '1', default: '0', origin: 'flag' })
      expect(of('PILOT_MOCK_SERVICES')).to.include({ value: '3', origin: 'environment' })
      expect(of('JWT_RULE')).to.include({ value: null, origin: 'environment' })
      expect(code).to.equal(0)
    } finally {
      await service.dispose()
    }
  })

  it('refuses flags of a server together with --running, and those of a question without it', async () => {
    expect((await runCommand(['config', '--running', '--writers', '2'])).stderr).to.equal('Error: --writers: a server that runs has its own\n')
    expect((await runCommand(['config', '--address', 'localhost:8080'])).stderr).to.equal('Error: --address needs --running\n')
  })

  it('says which value cannot be used and exits with 1', async () => {
    const { stdout, code } = await runCommand(['config', '--changed'], { INJECT_ENABLED: 'perhaps' })
    expect(stdout).to.match(/^INJECT_ENABLED +perhaps +true +environment +expected true or false$/m)
    expect(stdout).not.to.include('--grpcAddr')
    expect(code).to.equal(1)
  })

  it('says which flags cannot be used, all of them, as the start of a server does', async () => {
    const line = ['--grpcAddr', 'nonsense', '--registries', 'Odd', '--appNamespace', 'a,B']
    const { stdout, code } = await runCommand(['config', '--changed', ...line])
    expect(stdout).to.match(/^--grpcAddr +nonsense +:15010 +flag +"nonsense" is not an address such as :15010 or 127\.0\.0\.1:15010$/m)
    expect(stdout).to.match(/^--registries +Odd +Orchestrator +flag +"Odd" is not a registry; choose from Orchestrator, Mock$/m)
    expect(stdout).to.match(/^--appNamespace +a,B +flag +"B" is not the name of a namespace$/m)
    expect(code).to.equal(1)
    const started = await runCommand(['discovery', ...line])
    expect(started.code).to.equal(255)
    expect(started.stderr).to.match(
      /^Error: --grpcAddr: "nonsense" is not an address such as .*; --registries: "Odd" is not .*; --appNamespace: "B" is not /,
    )
  })
})
