/** The pages of the real command in a real browser. */
import { expect } from 'chai'
import { freePort } from '../../bench/ports.ts'
import { Browser, chromium } from '../harness/browser.ts'
import { runCommand, Service } from '../harness/service.ts'
import { until } from '../harness/until.ts'
import { sidecarNode, XdsClient } from '../harness/xds-client.ts'

describe('the pages, in a browser', function () {
  const program = chromium()
  if (program === undefined) {
    it('are not tried: there is no Chromium (Debian package chromium, or CHROMIUM_BIN)', () => this.ctx.skip())
    return
  }
  const service = new Service({ env: { PILOT_MOCK_SERVICES: '3', PILOT_ENABLE_ANALYSIS: 'true' }, flags: ['--profile'] })
  let browser: Browser
  let client: XdsClient
  let controlZ = ''
  before(async () => {
    const port = await freePort()
    controlZ = `http://127.0.0.1:${port}`
    service.flags.push('--secureGRPCAddr', `127.0.0.1:${await freePort()}`)
    service.flags.push('--ctrlz_address', '127.0.0.1', '--ctrlz_port', String(port))
    await service.start()
    client = await new XdsClient(service.grpcPort, sidecarNode('10.9.0.1', 'pod', 'ns'), true).connect().ready()
    browser = new Browser(program, { width: 1200, height: 900 })
    await browser.start()
  })
  after(async () => {
    client.close()
    await Promise.all([browser.dispose(), service.dispose()])
  })
  const authorize = async () => {
    const { stdout } = await runCommand(['token', '--namespace', 'mesh-system', '--service-account', 'operator'], service.env)
    await browser.send({ authorization: `Bearer ${stdout.trim()}` })
  }

  it('/metricz has the value of each metric on a screen of 1,200 pixels', async () => {
    await browser.open(`${controlZ}/metricz`)
    const rows = await browser.evaluate<{ text: string; right: number; width: number; labels: number }[]>(
      `[...document.querySelectorAll('#data tr')].map(({ cells }) => { const { right, width } = cells[1].getBoundingClientRect(); return { text: cells[1].textContent, right, width, labels: cells[0].textContent.length } })`,
    )
    expect(rows.length).to.be.greaterThan(100)
    expect(Math.max(...rows.map(({ labels }) => labels))).to.be.greaterThan(100)
    expect(rows.filter(({ text, right, width }) => text === '' || width < 5 || right > 1200)).to.deep.equal([])
    expect(await browser.evaluate('document.documentElement.scrollWidth')).to.be.at.most(1200)
  })

  it('/scopez shows what it has changed, and shows it later, too', async () => {
    await authorize()
    await browser.open(`${controlZ}/scopez`)
    const shown = () =>
      browser.evaluate<string[][]>(`[...document.querySelectorAll('#data tr')].map(({ cells }) => [...cells].map(({ textContent }) => textContent))`)
    const level = async () => {
      const [columns = [], ...rows] = await shown()
      return rows.find((row) => row[columns.indexOf('name')] === 'ads')?.[columns.indexOf('output_level')]
    }
    expect(await level()).to.equal('info')
    const select = `document.querySelector('select[data-form="scope=ads"]')`
    await browser.evaluate(`(() => { const one = ${select}; one.value = 'debug'; one.dispatchEvent(new Event('change')) })()`)
    await until('the table to show it', async () => (await level()) === 'debug')
    expect(await browser.evaluate(`document.getElementById('answer').textContent.trim()`)).to.equal('scope ads: output_level=debug')
    await browser.open(`${controlZ}/scopez`)
    expect([await level(), await browser.evaluate(`${select}.value`)]).to.deep.equal(['debug', 'debug'])
  })

  it('shows text and JSON with a way back, and programs the plain answer', async () => {
    const base = `http://127.0.0.1:${service.httpPort}`
    expect(await browser.open(`${base}/debug/syncz`)).to.deep.equal({ status: 200, type: 'text/html' })
    const shown = JSON.parse(await browser.evaluate<string>(`document.querySelector('pre').textContent`))
    expect(shown).to.be.an('array')
    expect((await browser.follow('a[href="/debug"]')).status).to.equal(200)
    expect(await browser.evaluate('location.pathname')).to.equal('/debug')
    expect((await browser.open(`${base}/no-such-page`)).status).to.equal(404)
    expect((await browser.follow('a[href="/"]')).status).to.equal(200)
    const plain = await fetch(`${base}/debug/syncz`)
    expect(plain.headers.get('content-type')).to.equal('application/json; charset=utf-8')
  })

  /** Pages that a link alone cannot ask, and what they say is wanted. */
  const wanting: Readonly<Record<string, RegExp>> = {
    '/debug/inject': /INJECT_ENABLED/,
    '/debug/config_distribution': /resource/,
    '/debug/routing?proxyID=pod.ns': /host/,
    '/debug/explain?proxyID=pod.ns': /resource|type/,
  }

  it('lead everywhere from the front page: each link answers, offers the connected proxies or says what is wanted, and has a way back', async () => {
    await browser.send({})
    for (const base of [`http://127.0.0.1:${service.httpPort}`, `http://127.0.0.1:${service.monitoringPort}`, controlZ]) {
      const seen = new Set(['/'])
      const faults: string[] = []
      for (const path of seen) {
        // A profile takes half a minute, and is a file.
        if (/pprof\/(profile|heap)$/.test(path)) continue
        const { status, type } = await browser.open(base + path)
        const links = await browser.evaluate<string[]>(
          `[...document.querySelectorAll('a[href]')].map(({ href }) => new URL(href)).filter(({ origin }) => origin === location.origin).map(({ pathname, search }) => pathname + search)`,
        )
        for (const link of links) seen.add(link)
        const offers = status === 400 && links.some((link) => link.includes('proxyID=pod.ns'))
        const says = wanting[path]?.test(await browser.evaluate<string>(`document.querySelector('pre')?.textContent ?? ''`)) ?? false
        if (status !== 200 && !offers && !says) faults.push(`${path}: ${status}`)
        if (type === 'text/html' && path !== '/' && !links.includes('/') && !/^\/debug\/?$/.test(path)) faults.push(`${path} has no way back`)
        // The empty text says that all is well.
        for (const accept of ['*/*', 'text/html'])
          if (!/^$|\n$/.test((await (await fetch(base + path, { headers: { accept } })).text()).slice(-1)))
            faults.push(`${path} ends without a newline`)
      }
      expect(faults, base).to.deep.equal([])
      expect(seen.size, [...seen].join(' ')).to.be.greaterThan(8)
    }
  })

  it('ask for parameters with a form, which keeps what was given', async () => {
    await browser.send({})
    const base = `http://127.0.0.1:${service.httpPort}`
    const answer = () => browser.evaluate<string>(`document.querySelector('pre').textContent`)
    const values = () => browser.evaluate<Record<string, string>>(`Object.fromEntries(new FormData(document.querySelector('form')))`)
    await browser.open(`${base}/debug/routing`)
    expect((await browser.follow('a[href="/debug/routing?proxyID=pod.ns"]')).status).to.equal(400)
    expect(await answer()).to.match(/^host: /)
    await browser.evaluate(`document.querySelector('[name=host]').value = 'nowhere.example'`)
    expect((await browser.follow('form button')).status).to.equal(200)
    expect(JSON.parse(await answer())).to.have.property('routing')
    expect(await values()).to.include({ proxyID: 'pod.ns', host: 'nowhere.example', scheme: '', header: '' })
    await browser.open(`${base}/debug/explain?proxyID=pod.ns`)
    expect(await browser.evaluate(`[...document.querySelector('[name=type]')].map(({ value }) => value)`)).to.deep.equal([
      '',
      'cds',
      'eds',
      'lds',
      'rds',
      'vhds',
    ])
    await browser.evaluate(`document.querySelector('[name=type]').value = 'cds'; document.querySelector('[name=name]').value = '"><b>x'`)
    expect((await browser.follow('form button')).status).to.equal(200)
    expect(await values()).to.deep.equal({ proxyID: 'pod.ns', type: 'cds', name: '"><b>x' })
    await browser.open(`${base}/debug/config_distribution?count=1`)
    expect(await values()).to.deep.equal({ resource: '', proxy_namespace: '', count: '1' })
    expect(await browser.evaluate(`document.querySelector('form').textContent`)).to.contain('<Kind>/<namespace>/<name>')
  })

  it('/signalz ends the process after a question only', async () => {
    await authorize()
    await browser.open(`${controlZ}/signalz`)
    await browser.click('button[data-form="signal=SIGTERM"]')
    await until('the question', () => browser.questions.length === 1)
    expect(browser.questions).to.deep.equal(['End this service?'])
    // What asks nothing is done, after what was asked and denied.
    await browser.click('button[data-form="signal=SIGHUP"]')
    await service.output.says('SIGHUP: reading configuration files again')
    service.output.lacks('shutting down')
    browser.agrees = true
    await browser.click('button[data-form="signal=SIGTERM"]')
    await service.output.says('shutting down: SIGTERM')
    expect(await service.stop()).to.equal(0)
  })
})
