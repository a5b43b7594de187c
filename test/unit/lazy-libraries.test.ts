/** Libraries, and message types, that are loaded with the first call, not with the start. */
import { execFileSync } from 'node:child_process'
import { expect } from 'chai'

/** Imports a module in a process of its own, and returns what was loaded with it whose specifiers have a part. */
function loadedWith(module: string, part: string): string[] {
  const url = new URL(`../../${module}`, import.meta.url)
  const hook = `import { registerHooks } from 'node:module'
    const seen = new Set()
    registerHooks({ resolve(name, context, next) { if (name.includes('${part}')) seen.add(name); return next(name, context) } })
    await import('${url}')
    console.log(JSON.stringify([...seen]))`
  return JSON.parse(execFileSync(process.execPath, ['--input-type=module', '--eval', hook], { encoding: 'utf8' })) as string[]
}

describe('the library of RPCs', () => {
  for (const module of [
    'actors/discovery/xds-writer/xds-writer.ts',
    'actors/discovery/admin/admin.ts',
    'actors/discovery/main.ts',
    'bin/discovery/discovery.ts',
    'bin/discovery/ca/show.ts',
  ])
    it(`is not loaded with ${module}`, () => {
      expect(loadedWith(module, '@connectrpc/')).to.deep.equal([])
    })

  it('is loaded with the implementations', () => {
    expect(loadedWith('actors/discovery/admin/admin-rpcs.ts', '@connectrpc/')).to.have.members([
      '@connectrpc/connect',
      '@connectrpc/connect/protocol-grpc-web',
    ])
    expect(loadedWith('src/cli/authority-client.ts', '@connectrpc/')).to.include('@connectrpc/connect-node')
  })
})

describe('the message types of Envoy', () => {
  for (const module of ['actors/discovery/main.ts', 'actors/discovery/admin/admin.ts'])
    it(`are not loaded with ${module}`, () => {
      expect(loadedWith(module, 'gen/envoy/')).to.deep.equal([])
    })

  it('are loaded with what makes resources of them', () => {
    expect(loadedWith('src/push/explain/routed-cluster.ts', 'gen/envoy/')).not.to.deep.equal([])
  })
})

describe('the library of YAML', () => {
  for (const module of ['xds-writer/xds-writer.ts', 'push-queue/push-queue.ts', 'distribution/distribution.ts'])
    it(`is not loaded with ${module}`, () => {
      expect(loadedWith(`actors/discovery/${module}`, 'yaml-documents.ts')).to.deep.equal([])
    })

  it('is loaded with what reads texts', () => {
    expect(loadedWith('src/config/mesh-texts.ts', 'yaml-documents.ts')).to.have.length(1)
  })
})

describe('the command-line library', () => {
  for (const module of ['actors/discovery/main.ts', 'actors/discovery/admin/admin.ts', 'actors/agent/main.ts', 'actors/agent/commands/request.ts'])
    it(`is not loaded with ${module}`, () => {
      expect(loadedWith(module, '@oclif/')).to.deep.equal([])
    })

  it('comes with commands, without its plugins and its help', () => {
    const loaded = ['bin/discovery-main.js', 'bin/discovery/version.ts', 'bin/agent/wait.ts'].flatMap((module) => loadedWith(module, '@oclif/'))
    expect(loaded).to.include('@oclif/core/command')
    expect(loaded.filter((name) => /plugin-|\/run$|\/help$|core$/.test(name))).to.deep.equal([])
  })
})
