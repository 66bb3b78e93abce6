internal import Platform

/// Recording reads for observers (S146).
extension ManagedObject {
    /// A probe for objects that are in no context yet, which several threads may read.
    private static let detachedProbe = Mutex(TrackingProbe())

    /// Records a read of a property if it happens inside `withObservationTracking`.
    func willRead(_ property: ObservedProperty) {
        if let observation { return observation.access(property, of: self) }
        // A worn access is released here, outside of the lock and of the context, because objects that users' closures have captured may be
        // deallocated then.
        if state == .registered {
            guard withContext({ $0.observed.isTracking() }).0 else { return }
            withContext { $0.observed.add(self) }
        } else {
            guard state == .detached, Self.detachedProbe.withLock({ $0.isTracking() }).0 else { return }
        }
        observe(property)
    }

    private func observe(_ property: ObservedProperty) {
        let made = ObservedObject()
        observation = made
        made.access(property, of: self)
    }

    /// Changes a property of an object that is in no context yet, and notifies its observers.
    func changeDetached(_ property: ObservedProperty, _ change: () -> Void) {
        guard let observation else { return change() }
        _ = observation.willSet(property, of: self)
        change()
        observation.didSet(of: self)
    }
}
