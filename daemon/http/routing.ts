/** The methods of a path. */
import type { Request, Response, Router } from 'express';
import type { Operation } from '../api/operation.js';
import { Refusal } from '../core/refusal.js';

type Method = Operation['method'];
export type MethodHandler = (req: Request, res: Response) => void | Promise<void>;

/**
 * Serves a path with its methods, HEAD where it has GET, and OPTIONS; any other method is 405 with `Allow`.
 *
 * @param refused handlers for methods that always fail, with an error of their own.
 */
export function route(
  router: Router,
  path: string,
  handlers: Partial<Record<Method, MethodHandler>>,
  refused: Partial<Record<Method, MethodHandler>> = {},
): void {
  const methods = Object.keys(handlers);
  const allow = [...methods, ...(handlers.GET ? ['HEAD'] : []), 'OPTIONS'].join(', ');
  router.all(path, (req, res) => {
    if (req.method === 'OPTIONS') {
      res.setHeader('Allow', allow);
      res.status(204).end();
      return;
    }
    // The response to HEAD is that to GET without its body, which Node omits.
    const method = (req.method === 'HEAD' ? 'GET' : req.method) as Method;
    const handler = handlers[method] ?? refused[method];
    if (!handler) throw new Refusal('method_not_allowed', 'method not allowed', { allow });
    return handler(req, res);
  });
}
