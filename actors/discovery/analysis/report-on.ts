/** Runs `pilot-discovery analyze` and `validate`: reads, analyzes, prints, and sets the exit status. */
import { jsonReport, sarifReport, textReport } from '../../../src/analysis/report.ts'
import { type AnalyzeOrder, fails } from '../../../src/cli/analyze-order.ts'
import { buildInfo } from '../../../src/cli/build-info.ts'
import { isColoured, print } from '../../../src/cli/print.ts'
import { oneLine } from '../../../src/logging/layout.ts'
import { count } from '../../../src/model/counts.ts'
import { analyzeFiles } from './analyze-files.ts'

/** Prints what is found. The exit status is 1 when a finding has the level at which the order fails, and when there was nothing to look at. */
export async function reportOn(order: AnalyzeOrder): Promise<void> {
  const { findings, read, ignored, ofCluster } = await analyzeFiles(order, process.stdin, process.env)
  const { stderr } = process
  if (order.form === 'json') print(jsonReport(findings))
  else if (order.form === 'sarif') print(sarifReport(findings, buildInfo().version))
  else if (findings.length > 0) print(textReport(findings, isColoured()))
  const unread =
    ignored.length === 0
      ? ''
      : `; ${count(ignored.length, 'file')} not read, since their names do not end in .yaml, .yml or .json: ${oneLine(ignored.slice(0, 20).join(', '))}`
  if (order.form === 'text')
    stderr.write(
      `${count(findings.length, 'finding')} in ${ofCluster === undefined ? '' : `${count(ofCluster, 'object')} of the cluster and `}${count(read, 'file')}${unread}\n`,
    )
  const isNothing = read === 0 && ofCluster === undefined && findings.length === 0
  // A check of nothing must not pass: the path is wrong, or the files have other names.
  if (isNothing)
    stderr.write(`Error: no configuration was found: ${oneLine(order.paths.join(', '))} has no file whose name ends in .yaml, .yml or .json\n`)
  if (isNothing || findings.some(({ level }) => fails(level, order.failOn))) process.exitCode = 1
}
