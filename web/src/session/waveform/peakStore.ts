import type { PeakProgress } from "./peaks";

/** Keeps computed waveforms in the browser, so that a recording is read once. Without storage it keeps nothing. */

const databaseName = "sidetone";
const storeName = "peaks";
const maxKept = 200;

export async function loadPeaks(key: string): Promise<PeakProgress | null> {
  const found = await withStore("readonly", (store) => store.get(key));
  return (found as PeakProgress | undefined) ?? null;
}

export async function savePeaks(key: string, peaks: PeakProgress): Promise<void> {
  const keys = (await withStore("readonly", (store) => store.getAllKeys())) as IDBValidKey[] | null;
  if (keys && keys.length >= maxKept) await withStore("readwrite", (store) => store.clear());
  await withStore("readwrite", (store) => store.put(peaks, key));
}

/** Runs one request. A browser that forbids storage (private windows) answers null. */
async function withStore(mode: IDBTransactionMode, use: (store: IDBObjectStore) => IDBRequest): Promise<unknown> {
  try {
    const database = await settled(openDatabase());
    try {
      return await settled(use(database.transaction(storeName, mode).objectStore(storeName)));
    } finally {
      database.close();
    }
  } catch {
    return null;
  }
}

function openDatabase(): IDBOpenDBRequest {
  const opening = indexedDB.open(databaseName, 1);
  opening.onupgradeneeded = () => opening.result.createObjectStore(storeName);
  return opening;
}

function settled<T>(request: IDBRequest<T>): Promise<T> {
  return new Promise((resolve, reject) => {
    request.onsuccess = () => resolve(request.result);
    request.onerror = () => reject(request.error);
  });
}
