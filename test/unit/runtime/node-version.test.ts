import { expect } from 'chai'
import { notStarted, tooOld } from '../../../bin/runtime.js'

describe('a Node that is too old', () => {
  const needed = 'Node v18.9.0 is too old: version 22.19 or newer is needed.'
  it('is told with what "npm install" brings for its platform', () => {
    const on = (platform: string, arch: string) => tooOld({ version: 'v18.9.0', platform, arch })
    for (const [platform, arch] of [
      ['linux', 'x64'],
      ['linux', 'arm64'],
      ['win32', 'x64'],
    ] as const)
      expect(on(platform, arch)).to.equal(`${needed} Run "npm install" here, which brings one.`)
    for (const [platform, arch, name] of [
      ['darwin', 'arm64', 'macOS on arm64'],
      ['darwin', 'x64', 'macOS on x64'],
      ['linux', 's390x', 'linux on s390x'],
      ['win32', 'arm64', 'win32 on arm64'],
    ] as const)
      expect(on(platform, arch)).to.equal(`${needed} For ${name}, "npm install" brings none: install one, and put it first in PATH.`)
  })

  it('says why another one cannot be started, and that musl is the reason only where it may be', () => {
    const error = (code: string) => Object.assign(new Error(`spawn ${code}`), { code })
    expect(notStarted('/missing/node', error('ENOENT'))).to.equal('/missing/node cannot be started: spawn ENOENT')
    expect(notStarted(process.execPath, error('EACCES'))).to.equal(`${process.execPath} cannot be started: spawn EACCES`)
  })
})
