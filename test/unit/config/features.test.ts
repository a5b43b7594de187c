import { readdirSync, readFileSync } from 'node:fs'
import { join } from 'node:path'
import { fileURLToPath } from 'node:url'
import { expect } from 'chai'
import { variables } from '../../../src/config/features.ts'

const root = fileURLToPath(new URL('../../..', import.meta.url))
const sources = ['src', 'actors']
  .flatMap((room) =>
    readdirSync(join(root, room), { recursive: true, withFileTypes: true })
      .filter((file) => file.name.endsWith('.ts') && file.name !== 'features.ts')
      .map((file) => readFileSync(join(file.parentPath, file.name), 'utf8')),
  )
  .join('\n')

describe('environment variables', () => {
  it('that are said to have an effect are read somewhere', () => {
    const idle = Object.entries(variables).filter(
      ([name, variable]) => variable.effect && !new RegExp(`eatures[.)]*\\??\\.${name}\\b|\\.${name}\\b`).test(sources),
    )
    expect(idle.map(([name]) => name)).to.deep.equal([])
  })

  it('are all those of the specification, with its defaults', () => {
    expect(Object.keys(variables)).to.include.members([
      'PILOT_DEBOUNCE_AFTER',
      'CITADEL_SELF_SIGNED_CA_RSA_KEY_SIZE',
      'VALIDATION_WEBHOOK_CONFIG_NAME',
      'MESH_GPRC_MAXRECVMSGSIZE',
    ])
    expect([variables.PILOT_DEBOUNCE_MAX.default, variables.PILOT_XDS_SEND_TIMEOUT.default, variables.MAX_WORKLOAD_CERT_TTL.default]).to.deep.equal([
      '10s',
      '5s',
      '2160h0m0s',
    ])
  })
})
