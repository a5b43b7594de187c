import { expect } from 'chai'
import { meshNames } from '../../../src/names/mesh-names.ts'
import { cutWebhooks, pathsWithout } from '../../../src/orchestrator/webhook-object.ts'

const name = 'mesh-sidecar-injector'
/** The paths that are told for the cluster `west` of a configuration with these connections of its webhooks. */
const told = (...clients: readonly unknown[]): readonly string[] | undefined => {
  const webhooks = clients.map((clientConfig) => ({ name: 'namespace.sidecar-injector.mesh.io', clientConfig }))
  const object = cutWebhooks({ metadata: { name }, webhooks }, { revision: '', name, names: meshNames('mesh.io') })
  return object && pathsWithout(object, 'west')
}

describe('the paths of injection webhooks', () => {
  it('are told where they do not name the cluster, each once, of a Service or a URL', () => {
    expect(told({ service: { path: '/inject' } }, { url: 'https://discovery.example:15017/inject' })).to.deep.equal(['/inject'])
    expect(told({ service: { path: '/inject/cluster/east' } }, { service: {} })).to.deep.equal(['/inject/cluster/east', ''])
    expect(told({ service: { path: '/inject/cluster/west' } }, { url: 'https://discovery.example/inject/net/n1/cluster/west/' })).to.deep.equal([])
    expect(told({ service: { path: '/inject/cluster/western' } })).to.deep.equal(['/inject/cluster/western'])
  })

  it('of other webhooks are not, and nothing that is written there throws', () => {
    const other = { name: 'somebody.else.io', clientConfig: { service: { path: '/inject' } } }
    const object = cutWebhooks({ metadata: { name }, webhooks: [other] }, { revision: '', name, names: meshNames('mesh.io') })
    expect(object && pathsWithout(object, 'west')).to.deep.equal([])
    expect(told(undefined, 'text', { url: 7 }, { url: 'none' }, { service: { path: {} } })).to.deep.equal([''])
  })
})
