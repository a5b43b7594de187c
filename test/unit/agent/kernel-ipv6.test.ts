import { mkdirSync, mkdtempSync, rmSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { expect } from 'chai'
import { kernelIpv6 } from '../../../actors/agent/kernel-ipv6.ts'

describe('IPv6 of the kernel', () => {
  let proc: string
  beforeEach(() => (proc = mkdtempSync(join(tmpdir(), 'mesh-proc-'))))
  afterEach(() => rmSync(proc, { recursive: true }))

  /** Writes the files of the kernel, with `disable_ipv6` of each scope; undefined: no file. */
  const state = (scopes: Readonly<Record<string, string | undefined>>) => {
    mkdirSync(join(proc, 'net'), { recursive: true })
    writeFileSync(join(proc, 'net/if_inet6'), '')
    for (const [scope, value] of Object.entries(scopes)) {
      mkdirSync(join(proc, 'sys/net/ipv6/conf', scope), { recursive: true })
      if (value !== undefined) writeFileSync(join(proc, 'sys/net/ipv6/conf', scope, 'disable_ipv6'), `${value}\n`)
    }
    return kernelIpv6(proc)
  }

  it('is absent without its files beside those of IPv4', () => {
    mkdirSync(join(proc, 'net'))
    writeFileSync(join(proc, 'net/tcp'), '')
    expect(kernelIpv6(proc)).to.equal('absent')
  })

  it('is off only if it is switched off for every interface and those to come', () => {
    expect(state({ all: '1', default: '1', lo: '1', eth0: '1' })).to.equal('off')
    expect(state({ default: '0' })).to.equal('on')
    expect(state({ default: '1', eth0: '0' })).to.equal('on')
    expect(state({ all: '0', eth0: '1' })).to.equal('off')
  })

  it('is on if that cannot be read', () => {
    expect(state({})).to.equal('on')
    expect(state({ default: '1', eth0: undefined })).to.equal('on')
  })

  it('is on if the kernel does not show its network at all', () => {
    expect(kernelIpv6(proc)).to.equal('on')
    expect(kernelIpv6(join(proc, 'nowhere'))).to.equal('on')
  })
})
