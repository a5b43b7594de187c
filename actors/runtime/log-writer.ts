/** The one place where log lines are written (pino), on the main thread: to targets, and to a rotating file if asked. */
import { mkdirSync, readdirSync, statSync, unlinkSync } from 'node:fs'
import { basename, dirname, extname, join } from 'node:path'
import pino from 'pino'
import { createStream } from 'rotating-file-stream'
import type { LogRecord } from '../../protocols/messages/log.ts'
import { jsonLine, plainLine } from '../../src/logging/layout.ts'
import type { LogOptions } from '../../src/logging/levels.ts'

/** Writes log lines. */
export interface LogWriter {
  write(record: LogRecord): void
  /** Waits until everything written is out. */
  flush(): Promise<void>
}

const oneMebibyte = 1024 * 1024

/** Opens the targets. Throws when one cannot be opened. */
export function openLog(options: LogOptions): LogWriter {
  const streams = options.targets.map((target) => {
    const dest = target === 'stdout' ? 1 : target === 'stderr' ? 2 : target
    return pino.destination({ dest, append: true, mkdir: true, sync: true })
  })
  const rotating = options.rotate ? rotatingFile(options.rotate) : undefined
  const layout = options.asJson ? jsonLine : plainLine
  return {
    write(record) {
      const line = layout(record)
      for (const stream of streams) stream.write(line)
      rotating?.write(line)
    },
    async flush() {
      for (const stream of streams) stream.flushSync()
      if (rotating) await new Promise<void>((resolve) => rotating.end(resolve))
    },
  }
}

function rotatingFile(rotate: NonNullable<LogOptions['rotate']>) {
  const folder = dirname(rotate.path)
  mkdirSync(folder, { recursive: true, mode: 0o744 })
  const extension = extname(rotate.path)
  const stem = basename(rotate.path, extension)
  const name = (time: number | Date | null) => {
    if (!time) return `${stem}${extension}`
    const stamp = new Date(time).toISOString().replace('Z', '').replaceAll(':', '-')
    return `${stem}-${stamp}${extension}`
  }
  const bytes = rotate.maxSizeMb * oneMebibyte
  const stream = createStream(name as never, {
    path: folder,
    mode: 0o644,
    history: join('.', `.${stem}.history`),
    initialRotation: false,
    ...(bytes < Number.MAX_SAFE_INTEGER ? { size: `${rotate.maxSizeMb}M` } : {}),
    ...(rotate.maxBackups > 0 ? { maxFiles: rotate.maxBackups } : {}),
  })
  if (rotate.maxAgeDays > 0) {
    const drop = () => dropOlder(folder, stem, extension, Date.now() - rotate.maxAgeDays * oneDay)
    drop()
    stream.on('rotated', drop)
  }
  return stream
}

const oneDay = 86_400_000

/** Deletes backups of a log that are older than a time (Unix milliseconds). */
function dropOlder(folder: string, stem: string, extension: string, oldest: number): void {
  for (const name of readdirSync(folder)) {
    const backup = name.startsWith(`${stem}-`) && name.endsWith(extension)
    if (backup && statSync(join(folder, name)).mtimeMs < oldest) unlinkSync(join(folder, name))
  }
}
