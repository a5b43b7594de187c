/**
 * A gRPC client without a proxy: it takes its configuration from `GRPC_XDS_BOOTSTRAP_CONFIG`, calls `/test.Greeter/Greet` at the target
 * that it is given, as often as the second argument says, and prints the answers as a JSON list.
 */
import { Client, credentials, type ServiceError } from '@grpc/grpc-js'
import { register } from '@grpc/grpc-js-xds'

register()
const [target = '', times = '1'] = process.argv.slice(2)
const client = new Client(target, credentials.createInsecure())
const bytes = (message: Buffer) => message
const answers: string[] = []
for (let call = 0; call < Number(times); call++)
  answers.push(
    await new Promise<string>((resolve) =>
      client.makeUnaryRequest(
        '/test.Greeter/Greet',
        bytes,
        bytes,
        Buffer.from('hello'),
        { deadline: Date.now() + 30_000 },
        (error: ServiceError | null, answer?: Buffer) => resolve(error ? `${error.code} ${error.details}` : String(answer)),
      ),
    ),
  )
console.log(JSON.stringify(answers))
process.exit(0)
