// Preloaded into a process: its queries for names go to the name server in NAME_SERVER (address and port).
const dns = require('node:dns')
const { syncBuiltinESMExports } = require('node:module')

const { NAME_SERVER: server } = process.env
if (server) {
  dns.Resolver = class extends dns.Resolver {
    constructor(options) {
      super(options)
      this.setServers([server])
    }
  }
  syncBuiltinESMExports()
}
