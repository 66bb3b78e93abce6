import StoreInterface
import StoreModel

/// Makes the route of a new root context of a store with a schema.
package typealias RootRouteFactory = @Sendable (StoreSchema) -> any RequestRoute

/// How the requests and saves of one context reach its parent and the store, for stacks whose children do not share the layers of
/// their parents.
///
/// Usually a context has none: a child reads its parent's sealed layers over a snapshot and asks no other context.
package protocol RequestRoute: AnyObject, Sendable {
    /// The snapshot that a child reads below its own changes; nil in a root, which reads the store.
    var base: (any StoreSnapshot)? { get }
    /// Returns the route of a child that is made now.
    func routeForChild(of context: ManagedObjectContext) -> any RequestRoute
    /// Returns all values of an object below the context's own changes; nil if there is no such object. On the context's executor.
    func row(_ entity: EntityIndex, _ key: ObjectKey, in context: ManagedObjectContext) throws -> [Value]?
    /// Drops the kept rows and relationships of these changes, or all of them if the changes are not known.
    func forget(_ changes: [ChangeSet]?)
    /// Called when a save has taken layers, oldest first, before the context removes them.
    ///
    /// - Parameter accepted: the changes that the level above made; nil if it made all changes of the layers.
    func didSave(_ layers: [Layer], accepted: ChangeSet?)
    /// Makes a child's changes unsaved changes of its parent. On the parent's executor.
    func merge(child push: ChildChanges, in parent: ManagedObjectContext) throws -> ParentState
    /// Saves children's changes, and the parent's own, through to the store. A save of the parent is running.
    ///
    /// - Parameter completion: called once, on the parent's executor.
    func mergeThrough(
        _ pushes: [ChildChanges], durability: Durability, in parent: ManagedObjectContext,
        _ completion: @escaping (Result<ParentState, any Error>) -> Void)
    /// Writes the layers of a root with `submit`, which blocks until the save is published or refused. On the root's executor.
    func write<Outcome>(_ layers: [Layer], _ submit: () throws -> Outcome) throws -> Outcome
}
