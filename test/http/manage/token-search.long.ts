import { describeSearches, ORDERS } from './token-searches.js';

describeSearches('a search among thousands of tokens, in every order', ORDERS.length);
