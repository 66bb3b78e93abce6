import StoreInterface
import StoreModel

/// Batch deletions that a context begins and shows when they return.
extension ManagedObjectContext {
    /// Deletes the saved objects that a request selects, as the coordinator's `batchDelete` does, and blocks until every context can see
    /// it.
    ///
    /// The request selects by the newest saved values, so unsaved objects stay. This context then moves to the newest state and drops its
    /// unsaved changes of the deleted objects, which its next save would otherwise write again. Its other unsaved changes stay.
    ///
    /// - Precondition: The context is a root.
    /// - Throws: ``FetchError``, ``SaveError/deleteDenied(object:relationship:blocking:)``, `StoreError`. Then the context and the store are
    ///   unchanged.
    @discardableResult
    package func batchDeleteNow<M: PersistentModel>(
        _ request: FetchRequest<M>, options: BatchOptions = BatchOptions()
    ) throws -> BatchResult {
        try deleting { try configuration.coordinator.batchDeleteNow(request, options: options) }
    }

    /// Deletes the saved objects that a request by names selects, as ``batchDeleteNow(_:options:)-(FetchRequest<M>,_)`` does.
    @discardableResult
    package func batchDeleteNow(_ request: EntityFetchRequest, options: BatchOptions = BatchOptions()) throws -> BatchResult {
        try deleting { try configuration.coordinator.batchDeleteNow(request, options: options) }
    }

    private func deleting(_ delete: () throws -> BatchResult) throws -> BatchResult {
        checkIsolation()
        precondition(isRoot, "a child sees a batch deletion after its root; delete in the root")
        try checkOpen()
        let result = try delete()
        if layerStack.hasChanges() {
            let ids = result.changes.flatMap { $0.deletedIDs(in: storeIdentity) }
            let gone = Set(ids.map { ObjectAddress(entity: $0.entity, key: $0.key) })
            withoutUndo {
                for object in updatedObjects + deletedObjects
                where gone.contains(ObjectAddress(entity: object.entity, key: object.key)) {
                    dropObservedChanges(of: object, gone: gone)
                }
            }
        }
        refreshAllObjects()
        return result
    }
}
