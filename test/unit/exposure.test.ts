import { expect } from 'chai'
import { exposure } from '../../actors/discovery/given/exposure.ts'
import type { DiscoveryOptions } from '../../protocols/messages/discovery.ts'
import { readFeatures } from '../../src/config/features.ts'

describe('the log lines about listening addresses', () => {
  const pages = (monitoringAddr: string) => {
    const options = { grpcAddr: ':15010', secureGRPCAddr: '', httpAddr: ':8080', httpsAddr: '', monitoringAddr } as DiscoveryOptions
    const { features } = readFeatures({ ENABLE_DEBUG_ON_HTTP: 'false' })
    return exposure(options, features, false).flatMap(
      ({ message }) => /^(\S+ serves .*) to every client that can reach it, and/.exec(message)?.[1] ?? [],
    )
  }

  it('name the pages of the HTTP address and of the monitoring address separately', () => {
    expect(pages(':15014')).to.deep.equal([':8080 serves readiness (/ready)', ':15014 serves metrics (/metrics) and the version (/version)'])
  })

  it('say that gRPC is served at the HTTP address if it has none of its own', () => {
    const options = { grpcAddr: '', secureGRPCAddr: '', httpAddr: ':8080', httpsAddr: '', monitoringAddr: ':15014' } as DiscoveryOptions
    const lines = exposure(options, readFeatures({}).features, false).map(({ message }) => message)
    expect(lines[0]).to.equal('listening addresses: HTTP and gRPC :8080, monitoring :15014')
    expect(lines[1]).to.match(/^:8080, where gRPC is served because --grpcAddr is empty, serves configuration in plain text/)
  })

  it('name all pages at the HTTP address if there is no monitoring address', () => {
    expect(pages('')).to.deep.equal([':8080 serves readiness (/ready), metrics (/metrics) and the version (/version)'])
  })
})
