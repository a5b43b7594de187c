/** A service `t.T` of methods with one text (`google.protobuf.StringValue`) in and out, made without generated code. */
import { create, createFileRegistry, type DescMethodUnary, type DescService } from '@bufbuild/protobuf'
import { FileDescriptorProtoSchema, FileDescriptorSetSchema, file_google_protobuf_wrappers, StringValueSchema } from '@bufbuild/protobuf/wkt'
import type { Call, CallBounds, CallStatus } from '../../actors/rpc/call.ts'
import { callOf, connectHandlers, errorOf } from '../../actors/rpc/connect-handlers.ts'
import { lazyRpcs, type Rpcs } from '../../actors/rpc/rpc-methods.ts'
import { scanFields, textField } from '../../src/xds/slab/wire.ts'

/** Answers a text with a text or a status. */
export type AnswerText = (text: string, call: Call) => Promise<string | CallStatus> | string | CallStatus

/** A method of the service. */
export interface TextMethod {
  readonly bounds: CallBounds
  readonly answer: AnswerText
}

/** Encodes and decodes a message of the service. */
export const textMessage = {
  encode: (text: string): Buffer => Buffer.from(textField(1, text)),
  decode: (message: Buffer): string => [...scanFields(message)].find(({ field }) => field === 1)?.bytes?.toString() ?? '',
}

/** Returns the methods, by path `/t.T/<name>`. `failed` is called with errors that are no status. */
export function textService(methods: Readonly<Record<string, TextMethod>>, failed: (path: string, error: unknown) => void): Rpcs {
  const bounds = Object.entries(methods).map(([name, method]) => [`/t.T/${name}`, { type: 'unary' as const, bounds: method.bounds }])
  return lazyRpcs(Object.fromEntries(bounds), async () =>
    connectHandlers({
      failed,
      routes: (router) => {
        for (const [name, { answer }] of Object.entries(methods))
          router.rpc(methodOf(Object.keys(methods), name), async ({ value }, context) => {
            const answered = await answer(value, callOf(context))
            if (typeof answered !== 'string') throw errorOf(answered)
            return create(StringValueSchema, { value: answered })
          })
      },
    }),
  )
}

type TextDesc = DescMethodUnary<typeof StringValueSchema, typeof StringValueSchema>

function methodOf(names: readonly string[], name: string): TextDesc {
  const type = `.${StringValueSchema.typeName}`
  const file = create(FileDescriptorProtoSchema, {
    name: 't.proto',
    package: 't',
    syntax: 'proto3',
    dependency: ['google/protobuf/wrappers.proto'],
    service: [{ name: 'T', method: names.map((each) => ({ name: each, inputType: type, outputType: type })) }],
  })
  const set = create(FileDescriptorSetSchema, { file: [file_google_protobuf_wrappers.proto, file] })
  const service = createFileRegistry(set).getService('t.T') as DescService
  return service.methods.find((method) => method.name === name) as TextDesc
}
