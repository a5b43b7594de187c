import { writeFileSync } from 'node:fs'
import { makeBootstrap } from '../src/bootstrap/bootstrap.ts'
import { mergeProxyConfig } from '../src/bootstrap/proxy-config.ts'
import { statsChoice } from '../src/bootstrap/stats.ts'
import { envoyArguments } from '../src/bootstrap/command-line.ts'
const config = mergeProxyConfig([{source:'x', document: JSON.parse(process.argv[2] ?? '{}')}], console.error)
const node = {role:'sidecar' as const,id:'sidecar~10.1.1.1~a.b~b.svc.cluster.local',domain:'b.svc.cluster.local',addresses:['10.1.1.1'],isIpv6Only:false,name:'a',namespace:'b',serviceAccount:'',clusterId:'',serviceCluster:'x.b',metadata:{A:'b'}}
const settings = { config, node, locality: {region:'a'}, stats: statsChoice(config, {}, 'mesh.io'), localhost:'127.0.0.1', wildcard:'0.0.0.0', dnsLookupFamily:'V4_ONLY' as const, isViaAgent:true,isDelta:false,callCredentials:undefined,discoveryRoots:undefined,provisionedCertificates:'',readinessPort:15021,metricsPort:15090,outlierLogPath:'',statsd:undefined, ...JSON.parse(process.argv[3] ?? '{}')}
const b = makeBootstrap(settings) as any
const extra = JSON.parse(process.argv[4] ?? '{}')
if (extra.runtime) Object.assign(b.layeredRuntime.layers[0].staticLayer, extra.runtime)
if (extra.tracing) b.tracing = extra.tracing
writeFileSync('/tmp/bs-try/b.json', JSON.stringify(b, null, 1))
writeFileSync('/tmp/bs-try/args', envoyArguments('/tmp/bs-try/b.json', config, node, {logLevel:'warning',componentLogLevel:'misc:error',logAsJson:false,override:undefined}).join('\n')+'\n')
