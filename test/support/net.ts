// The way out as a laptop has it: plain http to the loopback, any port.
import { createNet, type Net } from '../../shared/net.ts'

export const loopbackNet: Net = createNet({
  allowHttp: true,
  allowAddresses: ['127.0.0.0/8'],
  allowPorts: '*',
})
