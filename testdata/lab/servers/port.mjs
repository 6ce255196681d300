// For examples of the SDK that have port 3000 built in: loaded before one (node --import), it makes it
// listen on $PORT of the loopback interface instead.
import net from 'node:net';

const listen = net.Server.prototype.listen;
net.Server.prototype.listen = function (port, ...rest) {
  const at = port === 3000 ? Number(process.env.PORT) : port;
  return listen.call(this, at, '127.0.0.1', ...rest.filter((x) => typeof x === 'function'));
};
