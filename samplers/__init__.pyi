from .entry import Row as Row
from .estimators.basic import Exact as Exact
from .estimators.basic import FullEnergy as FullEnergy
from .estimators.basic import KnownNoise as KnownNoise
from .estimators.basic import Minibatch as Minibatch
from .estimators.host import HostExact as HostExact
from .geodesic.chmc import CHMC as CHMC
from .geodesic.gmc import GMC as GMC
from .geodesic.gsgnht import GSGNHT as GSGNHT
from .geodesic.sggmc import SGGMC as SGGMC
from .overdamped.contour_sgld import ContourSGLD as ContourSGLD
from .overdamped.control_variates import SGLDCV as SGLDCV
from .overdamped.control_variates import ControlVariates as ControlVariates
from .overdamped.cyclical_sgld import CyclicalSGLD as CyclicalSGLD
from .overdamped.host_sgld import HostSGLD as HostSGLD
from .overdamped.leimkuhler_matthews import LeimkuhlerMatthews as LeimkuhlerMatthews
from .overdamped.mala import MALA as MALA
from .overdamped.psgld import PSGLD as PSGLD
from .overdamped.replica_exchange import ReplicaExchangeSGLD as ReplicaExchangeSGLD
from .overdamped.saga import SAGA as SAGA
from .overdamped.saga import SAGALD as SAGALD
from .overdamped.sgfs import SGFS as SGFS
from .overdamped.sgld import SGLD as SGLD
from .overdamped.svrg import SVRG as SVRG
from .overdamped.svrg import SVRGLD as SVRGLD
from .overdamped.variance_reduced import VarianceReducedSGLD as VarianceReducedSGLD
from .particles.particle_flow import ParticleFlow as ParticleFlow
from .particles.parvi import ParVI as ParVI
from .particles.psghmc import PSGHMC as PSGHMC
from .particles.rsvgd import RSVGD as RSVGD
from .particles.rsvgd_arcsine import ArcsineRSVGD as ArcsineRSVGD
from .particles.rsvgd_embedded import EmbeddedRSVGD as EmbeddedRSVGD
from .particles.svgd import SVGD as SVGD
from .positive.cir_euler import CIREuler as CIREuler
from .positive.exponential_ou import ExponentialOU as ExponentialOU
from .positive.gamma_updates import ExactGamma as ExactGamma
from .positive.scir import SCIR as SCIR
from .riemannian.metrics import Metric as Metric
from .riemannian.mmala import MMALA as MMALA
from .riemannian.rmhmc import RMHMC as RMHMC
from .riemannian.sgrhmc import SGRHMC as SGRHMC
from .riemannian.sgrld import SGRLD as SGRLD
from .run import NonFiniteError as NonFiniteError
from .run import Run as Run
from .simple import PositionMixin as PositionMixin
from .simple import simple_sampler as simple_sampler
from .thermostats.badodab import BADODAB as BADODAB
from .thermostats.msgnht import MSGNHT as MSGNHT
from .thermostats.sgnht import SGNHT as SGNHT
from .types import AdaGradSteps as AdaGradSteps
from .types import AdaptiveLaw as AdaptiveLaw
from .types import BalancedVelocity as BalancedVelocity
from .types import Claim as Claim
from .types import Claims as Claims
from .types import Composite as Composite
from .types import CyclicalSchedule as CyclicalSchedule
from .types import DensityEstimate as DensityEstimate
from .types import Diffusion as Diffusion
from .types import EmbeddedDiffusion as EmbeddedDiffusion
from .types import Estimate as Estimate
from .types import Estimator as Estimator
from .types import ExactFreeMotion as ExactFreeMotion
from .types import ExactLaw as ExactLaw
from .types import Exchange as Exchange
from .types import FisherScoring as FisherScoring
from .types import FlattenedLaw as FlattenedLaw
from .types import FollowsGeodesics as FollowsGeodesics
from .types import HamiltonianProposal as HamiltonianProposal
from .types import IndependentNoise as IndependentNoise
from .types import KernelWidth as KernelWidth
from .types import KineticEnergy as KineticEnergy
from .types import Law as Law
from .types import LearntPreconditioner as LearntPreconditioner
from .types import MarginalFlow as MarginalFlow
from .types import Need as Need
from .types import ParticleLaw as ParticleLaw
from .types import ParticleVelocity as ParticleVelocity
from .types import Position as Position
from .types import ReflectsAtZero as ReflectsAtZero
from .types import Reversal as Reversal
from .types import RiemannianVelocity as RiemannianVelocity
from .types import RunningSquares as RunningSquares
from .types import Sampler as Sampler
from .types import ShearingForce as ShearingForce
from .types import Source as Source
from .types import State as State
from .types import StationaryLaw as StationaryLaw
from .types import StationaryMoments as StationaryMoments
from .types import SteinVelocity as SteinVelocity
from .types import StochasticEquation as StochasticEquation
from .types import UncompensatedNoise as UncompensatedNoise
from .underdamped.amagold import AMAGOLD as AMAGOLD
from .underdamped.cyclical_sghmc import CyclicalSGHMC as CyclicalSGHMC
from .underdamped.hmc import HMC as HMC
from .underdamped.sghmc import SGHMC as SGHMC
from .underdamped.splitting import ABOBA as ABOBA
from .underdamped.splitting import BAOAB as BAOAB
from .underdamped.splitting import OABAO as OABAO
from .underdamped.splitting import OBABO as OBABO
from .underdamped.splitting import LangevinSplitting as LangevinSplitting
from .underdamped.ubu import BUB as BUB
from .underdamped.ubu import UBU as UBU

__all__ = [
    "ABOBA",
    "AMAGOLD",
    "BADODAB",
    "BAOAB",
    "BUB",
    "CHMC",
    "GMC",
    "GSGNHT",
    "HMC",
    "MALA",
    "MMALA",
    "MSGNHT",
    "OABAO",
    "OBABO",
    "PSGHMC",
    "PSGLD",
    "RMHMC",
    "RSVGD",
    "SAGA",
    "SAGALD",
    "SCIR",
    "SGFS",
    "SGGMC",
    "SGHMC",
    "SGLD",
    "SGLDCV",
    "SGNHT",
    "SGRHMC",
    "SGRLD",
    "SVGD",
    "SVRG",
    "SVRGLD",
    "UBU",
    "AdaGradSteps",
    "AdaptiveLaw",
    "ArcsineRSVGD",
    "BalancedVelocity",
    "CIREuler",
    "Claim",
    "Claims",
    "Composite",
    "ContourSGLD",
    "ControlVariates",
    "CyclicalSGHMC",
    "CyclicalSGLD",
    "CyclicalSchedule",
    "DensityEstimate",
    "Diffusion",
    "EmbeddedDiffusion",
    "EmbeddedRSVGD",
    "Estimate",
    "Estimator",
    "Exact",
    "ExactFreeMotion",
    "ExactGamma",
    "ExactLaw",
    "Exchange",
    "ExponentialOU",
    "FisherScoring",
    "FlattenedLaw",
    "FollowsGeodesics",
    "FullEnergy",
    "HamiltonianProposal",
    "HostExact",
    "HostSGLD",
    "IndependentNoise",
    "KernelWidth",
    "KineticEnergy",
    "KnownNoise",
    "LangevinSplitting",
    "Law",
    "LearntPreconditioner",
    "LeimkuhlerMatthews",
    "MarginalFlow",
    "Metric",
    "Minibatch",
    "Need",
    "NonFiniteError",
    "ParVI",
    "ParticleFlow",
    "ParticleLaw",
    "ParticleVelocity",
    "Position",
    "PositionMixin",
    "ReflectsAtZero",
    "ReplicaExchangeSGLD",
    "Reversal",
    "RiemannianVelocity",
    "Row",
    "Run",
    "RunningSquares",
    "Sampler",
    "ShearingForce",
    "Source",
    "State",
    "StationaryLaw",
    "StationaryMoments",
    "SteinVelocity",
    "StochasticEquation",
    "UncompensatedNoise",
    "VarianceReducedSGLD",
    "simple_sampler",
]
