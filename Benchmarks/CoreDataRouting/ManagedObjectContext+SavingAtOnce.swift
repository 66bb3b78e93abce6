import ObjectGraph

extension ManagedObjectContext {
    /// Saves as `ModelContext.save()` of `StrataSwiftData` does: returns when all contexts can see the changes, and does not wait for the
    /// disk. Call this on the context's executor. Benchmarks cannot import that module, because it needs macros.
    ///
    /// - Throws: The same errors as `ModelContext.save()`.
    public func saveAtOnce() throws { try saveNow() }
}
