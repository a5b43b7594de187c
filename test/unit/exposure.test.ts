import { expect } from 'chai'
import { exposure } from '../../actors/discovery/exposure.ts'
import type { DiscoveryOptions } from '../../protocols/messages/discovery.ts'
import { readFeatures } from '../../src/config/features.ts'

describe('the log lines about listening addresses', () => {
  const pages = (monitoringAddr: string) => {
    const options = { grpcAddr: ':15010', secureGRPCAddr: '', httpAddr: ':8080', monitoringAddr } as DiscoveryOptions
    const { features } = readFeatures({ ENABLE_DEBUG_ON_HTTP: 'false' })
    return exposure(options, features, false).flatMap(
      ({ message }) => /^(\S+ serves .*) to every client that can reach it, and/.exec(message)?.[1] ?? [],
    )
  }

  it('name the pages of the HTTP address and of the monitoring address separately', () => {
    expect(pages(':15014')).to.deep.equal([':8080 serves readiness (/ready)', ':15014 serves metrics (/metrics) and the version (/version)'])
  })

  it('name all pages at the HTTP address if there is no monitoring address', () => {
    expect(pages('')).to.deep.equal([':8080 serves readiness (/ready), metrics (/metrics) and the version (/version)'])
  })
})
