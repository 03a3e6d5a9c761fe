/** What clients may ask besides /v1: about their token, and for a token in exchange for a JWT. */
import type { RequestListener } from 'node:http';
import { isTokenExchange, type TokenExchangeHandler } from './token-exchange.js';
import { isTokenSelf, type TokenSelfHandler } from './token-self.js';

export interface ClientRoutes {
  tokenSelf: TokenSelfHandler;
  tokenExchange: TokenExchangeHandler;
}

/** @param app serves everything else. */
export function forClients({ tokenSelf, tokenExchange }: ClientRoutes, app: RequestListener): RequestListener {
  return (req, res) => {
    const target = req.url ?? '';
    if (isTokenSelf(target)) void tokenSelf(req, res);
    else if (isTokenExchange(target)) void tokenExchange(req, res);
    else app(req, res);
  };
}
