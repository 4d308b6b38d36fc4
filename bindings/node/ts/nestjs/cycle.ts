/** Whether what the circuits wait for waits for the circuits: Nest would wait for ever, and end without a word. */

import type { InjectionToken } from "@nestjs/common";
import type { ModulesContainer } from "@nestjs/core";
import { ConfigError } from "../error";
import type { Module, Wrapper } from "./home";

/** A provider, and the module it is of. */
interface Place {
  readonly wrapper: Wrapper;
  readonly module: Module;
}

/**
 * Makes sure that a provider can be made without another one.
 *
 * @param from - the token of what is needed first
 * @param module - who asks for it
 * @param isLast - whether a provider is what can only be made after it
 * @param field - the option that asks for it
 * @throws {@link ConfigError} naming who needs whom
 */
export function checkOrder(
  from: InjectionToken,
  module: Module,
  container: ModulesContainer,
  isLast: (place: Place) => boolean,
  field: string,
): void {
  const seen = new Set<Wrapper>();
  const walk = (token: InjectionToken, asking: Module, path: readonly string[]): void => {
    const place = find(token, asking, container);
    if (place === undefined || seen.has(place.wrapper)) return;
    if (isLast(place)) {
      const chain = `${path[0]} needs ${[...path.slice(1), "a circuit"].join(", which needs ")}`;
      throw new ConfigError(`\`${field}\` must be there before the circuits, but ${chain}`, field, path[0] ?? null);
    }
    seen.add(place.wrapper);
    // What is ours on the way says nothing to anybody.
    const next = place.module === module ? path : [...path, nameOf(token)];
    for (const needed of needs(place.wrapper)) walk(needed, place.module, next);
  };
  walk(from, module, []);
}

/** Where Nest looks: in the module itself, then in those that it imports; and a token of ours may be of any. */
function find(token: InjectionToken, asking: Module, container: ModulesContainer): Place | undefined {
  const offering = [...asking.imports].filter(({ exports }) => exports.has(token));
  for (const module of [asking, ...offering, ...container.values()]) {
    const wrapper = module.providers.get(token) as Wrapper | undefined;
    if (wrapper !== undefined) return { wrapper, module };
  }
  return undefined;
}

/** What a provider needs, as it has said it to Nest: a factory in `inject`, a class by its decorators. */
function needs({ isFactory, inject, metatype }: Wrapper): InjectionToken[] {
  if (isFactory) return (inject ?? []).map(tokenOf).filter((token) => token !== undefined);
  if (typeof metatype !== "function") return [];
  const parameters: unknown[] = [...(Reflect.getMetadata("design:paramtypes", metatype) ?? [])];
  for (const { index, param } of Reflect.getMetadata("self:paramtypes", metatype) ?? []) parameters[index] = param;
  const properties = (Reflect.getMetadata("self:properties_metadata", metatype) ?? []) as { type: unknown }[];
  return [...parameters, ...properties.map(({ type }) => type)].map(tokenOf).filter((token) => token !== undefined);
}

function tokenOf(needed: unknown): InjectionToken | undefined {
  const { token, forwardRef } = (needed ?? {}) as { token?: InjectionToken; forwardRef?: () => InjectionToken };
  return token ?? forwardRef?.() ?? (needed as InjectionToken | undefined);
}

function nameOf(token: InjectionToken): string {
  return typeof token === "function" ? token.name : String(token);
}
